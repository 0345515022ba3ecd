// Writes addresses as the kernel does in sysfs.
#pragma once

#include <string>

#include "base/net/text.h"
#include "emulator/wire/types.h"

namespace rocemu::daemon {

using rocemu::to_text;
std::string to_text(const wire::Gid& gid);  // fe80:0000:…: eight groups, nothing left out
std::string guid_text(uint64_t guid);       // 0052:4fff:fe43:4500; host order

}  // namespace rocemu::daemon
