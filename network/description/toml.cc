#include "network/description/toml.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

namespace rocemu::network {
namespace {

// Takes comments away, and makes one line of a list that has several, which CLI11 does not do of
// itself where the list begins at the end of a line or has comments in it.
std::string plain_lines(const std::string& text) {
  std::string plain;
  char quote = 0;
  bool comment = false;
  bool value = false;  // behind an equals sign
  int depth = 0;       // number of open brackets
  for (const char c : text) {
    if (c == '\n') {
      comment = false;
      quote = 0;
      value = depth > 0;
      plain += depth > 0 ? ' ' : c;
      continue;
    }
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '#') {
      comment = true;
    } else if (!comment && (c == '"' || c == '\'')) {
      quote = c;
    } else if (!comment) {
      value = value || c == '=';
      if (value) depth = std::max(0, depth + (c == '[') - (c == ']'));
    }
    if (!comment) plain += c;
  }
  return plain;
}

// The last one of a list may have a comma behind it.
std::vector<std::string> values_of(const CLI::ConfigItem& item) {
  std::vector<std::string> values = item.inputs;
  while (!values.empty() && values.back().empty()) values.pop_back();
  return values;
}

}  // namespace

std::vector<TomlKey> read_toml(const std::string& text) {
  std::vector<TomlKey> keys;
  std::istringstream stream(plain_lines(text));
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
      if (item.name == "++" || item.name == "--") continue;  // a section begins, ends
      std::string section;
      for (const std::string& parent : item.parents)
        section += (section.empty() ? "" : ".") + parent;
      keys.push_back({section, item.name, values_of(item)});
    }
  } catch (const CLI::Error& error) {
    throw NotToml{error.what()};
  }
  return keys;
}

}  // namespace rocemu::network
