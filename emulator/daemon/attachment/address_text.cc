#include "emulator/daemon/attachment/address_text.h"

#include <fmt/format.h>

namespace rocemu::daemon {

std::string to_text(const wire::Gid& gid) {
  std::string text;
  for (size_t i = 0; i < gid.bytes.size(); ++i) {
    if (i != 0 && i % 2 == 0) text += ':';
    text += fmt::format("{:02x}", gid.bytes[i]);
  }
  return text;
}

std::string guid_text(uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff,
                     (guid >> 16) & 0xffff, guid & 0xffff);
}

}  // namespace rocemu::daemon
