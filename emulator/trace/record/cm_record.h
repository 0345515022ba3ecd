// A message of the connection manager as a record.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/trace/format/record.h"

namespace rocemu::trace {

// Returns all but time, device and peer's device; of what is no message of the connection manager,
// a record of Kind::none.
Record cm_record(std::span<const std::byte> mad, bool sent);

}  // namespace rocemu::trace
