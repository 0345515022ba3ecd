// An algorithm made by its text form, and the calls that a transport would make.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "emulator/congestion/settings.h"
#include "tests/unit/time_units.h"

namespace rocemu::congestion::test {

// A flow of packets of 1000 bytes on a line of 100 Gbit/s, unless told otherwise.
inline std::unique_ptr<Algorithm> algorithm_of(const std::string& text,
                                               const Flow& flow = {.line_rate_bps = 100'000'000'000,
                                                                   .max_frame_bytes = 1000}) {
  const ParsedSettings parsed = parse_settings(text);
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  return parsed.settings->make(flow);
}

inline double shown(const Algorithm& algorithm, const std::string& name, TimeNs now = 0) {
  const auto values = algorithm.view(now);
  const auto found = std::ranges::find(values, name, &NamedValue::name);
  REQUIRE(found != values.end());
  return found->value;
}

}  // namespace rocemu::congestion::test
