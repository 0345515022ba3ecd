// A message of the connection manager as a record.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/trace/format/record.h"

namespace rocemu::trace {

// All but time, device and peer's device. Of Kind::none for what is no message of the connection
// manager.
Record cm_record(std::span<const std::byte> mad, bool sent);

}  // namespace rocemu::trace
