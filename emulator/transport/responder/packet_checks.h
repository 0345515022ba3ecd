// The checks of a packet that more than one service makes. Each finds a row of refusals.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/transport/qp/network_header.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/responder/migrating_path.h"
#include "emulator/transport/responder/refusals.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

// The keys are the same, and one end at least is a full member (IBTA vol 1, 10.9.3).
inline bool pkey_matches(uint16_t own, uint16_t other) {
  return ((other ^ own) & 0x7fff) == 0 && ((other | own) & 0x8000) != 0;
}

// Says whether a packet is for this QP of a connected service, RC, XRC or UC, and came by `path`.
inline Refusal check_connection(const QpContext& context, const wire::Packet& packet,
                                const Path& path) {
  if (!receives(context.state)) return Refusal::not_receiving;
  if (packet.transport() != context.transport) return Refusal::wrong_transport;
  if (!is_from_peer(packet, path)) return Refusal::wrong_address;
  if (!pkey_matches(context.attributes.pkey, packet.bth.pkey)) return Refusal::wrong_pkey;
  return Refusal::none;
}

// The same by the path that the QP has, whether it watches its peer's or not.
inline Refusal check_connection(QpContext& context, const wire::Packet& packet) {
  if (context.migration.watches()) [[unlikely]]
    return check_migrating_path(context, packet);
  return check_connection(context, packet, context.attributes.path);
}

// Checks the payload's length against the opcode (IBTA vol 1, 9.7.4.1.6; rxe cites C9-92) and the
// opcode against the message under way (9.7.4.1.4), which is a send, a write, or none.
inline Refusal check_message(const wire::OpcodeTraits& traits, size_t payload_bytes,
                             uint32_t mtu_bytes, wire::MessageKind under_way) {
  if (traits.kind == wire::MessageKind::send || traits.kind == wire::MessageKind::write) {
    if (traits.ends ? payload_bytes > mtu_bytes : payload_bytes != mtu_bytes)
      return Refusal::payload_length;
    if (traits.ends && !traits.starts && payload_bytes == 0) return Refusal::payload_length;
  }
  const bool goes_on = under_way != wire::MessageKind::none;
  if (traits.starts == goes_on || (goes_on && traits.kind != under_way))
    return Refusal::opcode_sequence;
  return Refusal::none;
}

}  // namespace rocemu::transport
