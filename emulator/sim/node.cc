#include "emulator/sim/node.h"

namespace rocemu::sim {

wire::MacAddress Node::mac() const {
  const uint32_t number = index_ + 1;
  return {2,
          0,
          0,
          static_cast<uint8_t>(number >> 16),
          static_cast<uint8_t>(number >> 8),
          static_cast<uint8_t>(number)};
}

uint32_t Node::index_of(const wire::MacAddress& mac) {
  if (mac[0] != 2 || mac[1] != 0 || mac[2] != 0) return ~uint32_t{0};
  return (uint32_t{mac[3]} << 16 | uint32_t{mac[4]} << 8 | mac[5]) - 1;
}

}  // namespace rocemu::sim
