#pragma once

#include <cstdint>

#include "emulator/transport/interface/host_interface.h"

namespace rocemu::shake {

// The rest of a range after so many of its bytes.
inline transport::MemoryRange behind(transport::MemoryRange range, uint32_t offset_bytes) {
  range.address += offset_bytes;
  if (range.mapped != nullptr) range.mapped += offset_bytes;
  return range;
}

}  // namespace rocemu::shake
