// DPDK's way to write a device: its name, then ",key=value" for each argument.
#pragma once

#include <optional>
#include <string_view>

namespace rocemu::dpdk_io {

inline std::string_view device_name(std::string_view arguments) {
  return arguments.substr(0, arguments.find(','));
}

// Empty when `key` is not there; the last one counts.
inline std::optional<std::string_view> device_argument(std::string_view arguments,
                                                       std::string_view key) {
  std::optional<std::string_view> value;
  for (size_t comma = arguments.find(','); comma != std::string_view::npos;) {
    arguments.remove_prefix(comma + 1);
    comma = arguments.find(',');
    const std::string_view argument = arguments.substr(0, comma);
    if (argument.size() > key.size() && argument.starts_with(key) && argument[key.size()] == '=')
      value = argument.substr(key.size() + 1);
  }
  return value;
}

}  // namespace rocemu::dpdk_io
