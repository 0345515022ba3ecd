// Behaviours of a shaken NIC that the specification permits and hardware seldom shows: each has a
// name by which it is chosen, shown and counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocemu::shake {

enum class Behaviour : uint8_t {
  placement,
  scribble,
  completions,
  flushes,
  events,
  overtaking,
  late_acks,
  rnr,
  garbage,
  doorbells,
  numbers,
  exact_sizes,
  limits,
};

// The names are in the order of the enumeration.
inline constexpr std::array<std::string_view, 13> kBehaviourNames = {
    "placement", "scribble", "completions", "flushes", "events",      "overtaking", "late-acks",
    "rnr",       "garbage",  "doorbells",   "numbers", "exact-sizes", "limits",
};
inline constexpr size_t kBehaviours = kBehaviourNames.size();

constexpr size_t index_of(Behaviour behaviour) { return static_cast<size_t>(behaviour); }
static_assert(index_of(Behaviour::limits) + 1 == kBehaviours);

// The number of times that each behaviour was done.
using Counts = std::array<uint64_t, kBehaviours>;

}  // namespace rocemu::shake
