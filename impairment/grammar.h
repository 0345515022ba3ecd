// The text form of impairments: the one that people type, configuration files hold and the control
// protocol carries.
//
//   loss=1%,dup=0.1%,reorder=0.5%/50us,corrupt=10ppm,delay=20us,jitter=5us,rate=10gbit,queue=1mb,
//   outage=5ms/1s,seed=7
//
// or `none`. Pieces come in any order, each at most once, spaces around them allowed. A unit is
// always written: % ppm; ns us ms s; bit kbit mbit gbit (per second); b kb mb (bytes). The steps
// are of 1000.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "impairment/link.h"

namespace rocemu::impairment {

inline constexpr uint64_t kDefaultSeed = 1;
inline constexpr uint64_t kDefaultReorderDelayNs = 50'000;  // of "reorder=1%"

struct Spec {
  Impairments impairments;
  uint64_t seed = kDefaultSeed;

  bool operator==(const Spec&) const = default;
};

// Either a spec, or an error: one line without a full stop that names the piece that is wrong and
// shows the right form.
struct ParsedSpec {
  std::optional<Spec> spec;
  std::string error;
};

ParsedSpec parse_spec(std::string_view text);

// The shortest text that parse_spec() makes the same spec of; for a spec that it never returns (a
// queue without a rate, a probability over 1, …) a text that shows what is in it.
std::string to_text(const Spec& spec);

}  // namespace rocemu::impairment
