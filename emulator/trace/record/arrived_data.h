// What the last packets that came for a QP have brought, and where that belongs as far as packets
// tell: with RC and UC the PSNs of a message follow each other, and all of its packets but the last
// are as long as the first. A WRITE's later packets have no address of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "emulator/wire/packet.h"

namespace rocemu::trace {

// What one packet has brought.
struct ArrivedPacket {
  wire::Psn psn;
  uint32_t length_bytes = 0;
  bool has_address = false;
  uint64_t address = 0;  // in the memory of the QP's program
};

class ArrivedData {
 public:
  void note(const wire::Packet& packet) {
    const wire::OpcodeTraits& traits = packet.traits();
    const wire::Psn psn = packet.bth.psn;
    const auto length_bytes = static_cast<uint32_t>(packet.payload.size());
    ArrivedPacket& arrived = packets_[psn.value() % packets_.size()];
    arrived = {psn, length_bytes};
    using enum wire::MessageKind;
    if (traits.kind != write && traits.kind != atomic_write) return;
    if (traits.reth) begin_write(psn, length_bytes, packet.ext.reth);
    const uint32_t ahead = (psn.value() - write_.first_psn.value()) & wire::Psn::kMask;
    if (ahead >= write_.packets) return;
    arrived.has_address = true;
    arrived.address = write_.address + uint64_t{ahead} * write_.packet_bytes;
  }

  // Null when it is not known any more.
  const ArrivedPacket* find(wire::Psn psn) const {
    const ArrivedPacket& arrived = packets_[psn.value() % packets_.size()];
    return arrived.psn == psn ? &arrived : nullptr;
  }

 private:
  void begin_write(wire::Psn psn, uint32_t length_bytes, const wire::Reth& reth) {
    const uint32_t packet_bytes = std::max(length_bytes, 1u);
    const uint32_t packets = 1 + (std::max(reth.length_bytes, 1u) - 1) / packet_bytes;
    write_ = {psn, packets, packet_bytes, reth.virtual_address};
  }

  // The last WRITE that has begun.
  struct Write {
    wire::Psn first_psn;
    uint32_t packets = 0;  // 0: none has begun
    uint32_t packet_bytes = 0;
    uint64_t address = 0;
  };
  Write write_;
  std::array<ArrivedPacket, 64> packets_{};  // by the low bits of the PSN: a burst's worth
};

// The memory that a packet asks for by key, kept in case that it is refused.
struct AskedMemory {
  uint32_t key = 0;
  uint32_t length_bytes = 0;
  uint64_t address = 0;

  // Others than requests with a RETH or an AtomicETH ask for none, and change nothing.
  void note(const wire::Packet& packet) {
    const wire::OpcodeTraits& traits = packet.traits();
    if (traits.reth) {
      const wire::Reth& reth = packet.ext.reth;
      *this = {reth.rkey.value, reth.length_bytes, reth.virtual_address};
    } else if (traits.atomic_eth) {
      const auto& atomic = packet.ext.atomic;
      *this = {atomic.rkey.value, sizeof(uint64_t), atomic.virtual_address};
    }
  }
};

}  // namespace rocemu::trace
