// The settings of a NIC that is shaken: the behaviours, their strength, and the seed that repeats
// it. The text form is that of `--shake`: names with commas between, "all", "-name" for one that is
// not to be, and "strength=PERCENT", "seed=NUMBER". Nothing, or names that are taken out alone,
// means all.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/shake/common/behaviour.h"

namespace rocemu::shake {

struct Settings {
  std::bitset<kBehaviours> chosen;  // none: the NIC is not shaken
  uint32_t strength_percent = 50;   // 1 to 100; chances and times grow with it
  uint64_t seed = 0;                // 0: to be drawn

  bool on() const { return chosen.any(); }
  bool has(Behaviour behaviour) const { return chosen[index_of(behaviour)]; }
  bool operator==(const Settings&) const = default;
};

struct ParsedSettings {
  std::optional<Settings> settings;
  std::string error;  // when there are none: what is wrong, in one line
};

ParsedSettings parse_settings(std::string_view text);
// Returns the text that parse_settings() takes. Precondition: on().
std::string to_text(const Settings& settings);

}  // namespace rocemu::shake
