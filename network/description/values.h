// Functions that read the values of keys. A description of something else that keeps to the same
// grammar reads its own keys with these.
#pragma once

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "impairment/quantity.h"

namespace rocemu::network {

using Values = std::vector<std::string>;

// Thrown: what is wrong with a value; whoever knows the key adds where.
struct Wrong {
  std::string what;
};

inline std::string quoted(const std::string& text) { return "'" + text + "'"; }

inline const std::string& one(const Values& values) {
  if (values.size() != 1) throw Wrong{"one value is wanted, and once"};
  return values.front();
}

inline uint64_t quantity(const impairment::Kind& kind, const Values& values) {
  const impairment::ParsedQuantity parsed = impairment::parse_quantity(kind, one(values));
  if (!parsed.value) throw Wrong{parsed.error};
  return *parsed.value;
}

inline uint64_t positive(const impairment::Kind& kind, const Values& values) {
  const uint64_t value = quantity(kind, values);
  if (value == 0) throw Wrong{quoted(values.front()) + " is nothing; more is wanted"};
  return value;
}

inline uint64_t number(const std::string& text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < least ||
      value > most)
    throw Wrong{quoted(text) + " is no whole number from " + std::to_string(least) + " to " +
                std::to_string(most)};
  return value;
}

// The names of the keys that a table has in a section, as a sentence has them.
template <class Keys>
std::string names_in(const Keys& keys, const std::string& section) {
  std::string names;
  for (const auto& key : keys)
    if (key.section == section) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names;
}

inline bool truth(const Values& values) {
  if (one(values) == "true") return true;
  if (one(values) == "false") return false;
  throw Wrong{quoted(values.front()) + " is neither true nor false"};
}

template <class Value>
Value choice(const Values& values, std::initializer_list<std::pair<const char*, Value>> choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (one(values) == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Wrong{quoted(values.front()) + " is none of " + names};
}

}  // namespace rocemu::network
