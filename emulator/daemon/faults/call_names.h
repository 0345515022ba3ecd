// The calls of programs by the names that faults have for them, and those that give something up,
// which go on when a device is lost.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocemu::daemon {

// Empty: a call that faults are not about.
std::string_view call_name(uint32_t operation);
bool gives_up(uint32_t operation);

}  // namespace rocemu::daemon
