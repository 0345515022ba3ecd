// The NETWORK of a port specification (port_spec.h): what a port that has no kernel behind it is
// told of its network.
#pragma once

#include <string>
#include <string_view>

#include "dpdk_io/spec/port_spec.h"

namespace rocemu::dpdk_io {

// Returns what is wrong, for the user, or nothing.
std::string parse_network(std::string_view text, PortSpec& spec);

// "@..." as parse_network() takes it, or nothing when nothing was given.
std::string network_text(const PortSpec& spec);

template <class Items, class ToText>
std::string joined(const Items& items, ToText to_text, char separator = '+') {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += to_text(item);
  }
  return text;
}

// Calls each(part) for the parts of `text` between separators, until one returns an error.
template <class Each>
std::string for_each_part(std::string_view text, char separator, Each each) {
  while (true) {
    const std::string_view part = text.substr(0, text.find(separator));
    if (std::string error = each(part); !error.empty() || part.size() == text.size()) return error;
    text.remove_prefix(part.size() + 1);
  }
}

}  // namespace rocemu::dpdk_io
