#include "emulator/wire/selective.h"

#include "base/byte_order.h"

namespace rocemu::wire::selective {

bool is_selective_nak(const Packet& packet) {
  return is_placed(packet.bth) && packet.operation() == Operation::read_response_only &&
         packet.ext.aeth.syndrome == syndrome::kNakSequence;
}

size_t place_bytes(uint8_t opcode) {
  const OpcodeTraits& traits = traits_of(opcode);
  const auto transport = static_cast<Transport>(opcode & 0xe0);
  if (transport != Transport::rc && transport != Transport::xrc) return 0;
  if (traits.kind == MessageKind::send) return kReceivePlaceBytes;
  return traits.kind == MessageKind::write && !traits.reth ? kRethBytes : 0;
}

void store_place(std::byte* to, uint8_t opcode, const ExtendedHeaders& ext) {
  if (place_bytes(opcode) == kReceivePlaceBytes) {
    store_be32(to, ext.receive_place.receive);
    store_be32(to + 4, ext.receive_place.packet);
  } else if (place_bytes(opcode) != 0) {
    store_be64(to, ext.reth.virtual_address);
    store_be32(to + 8, ext.reth.rkey.value);
    store_be32(to + 12, ext.reth.length_bytes);
  }
}

bool take_place(Packet& packet) {
  const size_t bytes = place_bytes(packet.bth.opcode);
  if (packet.payload.size() < bytes) return false;
  const std::byte* const from = packet.payload.data();
  if (bytes == kReceivePlaceBytes) {
    packet.ext.receive_place = {load_be32(from), load_be32(from + 4)};
  } else if (bytes != 0) {
    packet.ext.reth = {load_be64(from), RKey{load_be32(from + 8)}, load_be32(from + 12)};
  }
  packet.payload = packet.payload.subspan(bytes);
  return packet.payload.size() <= kMaxMtuBytes;
}

}  // namespace rocemu::wire::selective
