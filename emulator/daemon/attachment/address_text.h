// Writes addresses as the kernel does in sysfs.
#pragma once

#include <string>

#include "emulator/wire/types.h"

namespace rocemu::daemon {

std::string to_text(const wire::MacAddress& mac);  // 02:52:4f:43:45:00
std::string to_text(const wire::Gid& gid);         // fe80:0000:…: eight groups, nothing left out
std::string guid_text(uint64_t guid);              // 0052:4fff:fe43:4500; host order

}  // namespace rocemu::daemon
