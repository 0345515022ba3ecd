// Payloads between programs' memory and packets, for the requesters and responders of every
// service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/wire/opcode.h"

namespace rocemu::transport {

// The operation of one packet of a SEND or WRITE message.
wire::Operation message_operation(WorkOpcode opcode, bool first, bool last);

// That of what the request's scatter/gather list names.
PdHandle domain_of(const QpContext& context, const SendWork& work);

// True when the keys of a request's scatter/gather list grant `access` to all of it.
bool may_use(const QpContext& context, const SendWork& work, uint32_t access);

// Gathers `length_bytes` of the message from `offset_bytes` on into the frame that was added last.
// Returns false when a key no longer allows it.
bool gather(const QpContext& context, Burst& burst, const SendWork& work, uint32_t offset_bytes,
            uint32_t length_bytes, std::byte* to);

// Scatters `payload` of the packet with `psn` over the elements, which are of `pd`, from
// `offset_bytes` of them on. The bytes stay valid until DeferredCompletions::flush. False: a key
// does not allow it, or the elements are too short.
bool scatter(const QpContext& context, PdHandle pd, std::span<const Sge> sges,
             uint32_t offset_bytes, std::span<const std::byte> payload, ScatterKind kind,
             wire::Psn psn);
inline bool scatter(const QpContext& context, PdHandle pd, const ReceiveWork& receive,
                    uint32_t offset_bytes, std::span<const std::byte> payload, wire::Psn psn) {
  return scatter(context, pd, receive.sges.view(), offset_bytes, payload, ScatterKind::receive,
                 psn);
}

}  // namespace rocemu::transport
