#include "emulator/sim/node.h"

namespace rocemu::sim {

MacAddress Node::mac() const {
  const uint32_t number = index_ + 1;
  return {2,
          0,
          0,
          static_cast<uint8_t>(number >> 16),
          static_cast<uint8_t>(number >> 8),
          static_cast<uint8_t>(number)};
}

}  // namespace rocemu::sim
