// A TOML file as a list of its keys, in their order.
#pragma once

#include <string>
#include <vector>

namespace rocemu::network {

struct TomlKey {
  std::string section;  // with dots between its parts; empty: in front of all sections
  std::string name;
  std::vector<std::string> values;  // the elements of a list, or one value
};

// Thrown: the text is no TOML.
struct NotToml {
  std::string what;
};

std::vector<TomlKey> read_toml(const std::string& text);

}  // namespace rocemu::network
