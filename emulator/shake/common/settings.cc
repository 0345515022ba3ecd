#include "emulator/shake/common/settings.h"

#include <algorithm>
#include <charconv>

namespace rocemu::shake {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kStrength = "strength=";
constexpr std::string_view kSeed = "seed=";

std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

std::string known_names() {
  std::string names(kAll);
  for (const std::string_view name : kBehaviourNames) names += ", " + std::string(name);
  return names;
}

std::optional<uint64_t> number_in(std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < least || value > most) return std::nullopt;
  return value;
}

class Reader {
 public:
  // Returns what is wrong with the word, or nothing.
  std::string read(std::string_view word) {
    if (word.starts_with(kStrength)) {
      const auto percent = number_in(word.substr(kStrength.size()), 1, 100);
      if (!percent) return quoted(word) + ": the strength is a percentage from 1 to 100";
      settings_.strength_percent = static_cast<uint32_t>(*percent);
      return {};
    }
    if (word.starts_with(kSeed)) {
      const auto seed = number_in(word.substr(kSeed.size()), 1, UINT64_MAX);
      if (!seed) return quoted(word) + ": the seed is a number from 1 on";
      settings_.seed = *seed;
      return {};
    }
    return choose(word);
  }

  Settings finish() {
    if (!anything_named_) settings_.chosen.set();
    return settings_;
  }

 private:
  std::string choose(std::string_view word) {
    const bool taken_out = word.starts_with('-');
    const std::string_view name = taken_out ? word.substr(1) : word;
    const auto found = std::ranges::find(kBehaviourNames, name);
    const bool is_all = name == kAll && !taken_out;
    if (found == kBehaviourNames.end() && !is_all)
      return quoted(word) + " is no behaviour of a shaken NIC; they are " + known_names();
    if (taken_out && !anything_named_) settings_.chosen.set();
    anything_named_ = true;
    if (is_all) {
      settings_.chosen.set();
    } else {
      settings_.chosen.set(static_cast<size_t>(found - kBehaviourNames.begin()), !taken_out);
    }
    return {};
  }

  Settings settings_;
  bool anything_named_ = false;
};

}  // namespace

ParsedSettings parse_settings(std::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string error = reader.read(text.substr(0, comma));
    if (!error.empty()) return {std::nullopt, error};
    text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
  }
  const Settings settings = reader.finish();
  if (!settings.on()) return {std::nullopt, "all behaviours are taken out"};
  return {settings, {}};
}

std::string to_text(const Settings& settings) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  const bool by_what_is_missing = 2 * settings.chosen.count() > kBehaviours;
  if (by_what_is_missing) add(std::string(kAll));
  for (size_t i = 0; i < kBehaviours; ++i)
    if (settings.chosen[i] != by_what_is_missing)
      add((by_what_is_missing ? "-" : "") + std::string(kBehaviourNames[i]));
  add(std::string(kStrength) + std::to_string(settings.strength_percent));
  if (settings.seed != 0) add(std::string(kSeed) + std::to_string(settings.seed));
  return text;
}

}  // namespace rocemu::shake
