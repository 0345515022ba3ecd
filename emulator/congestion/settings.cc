#include "emulator/congestion/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "emulator/congestion/plugin.h"

namespace rocemu::congestion {
namespace {

constexpr double kBitsPerMbit = 1e6;
constexpr double kNsPerUs = 1e3;

using Kinds = std::span<const std::shared_ptr<const AlgorithmKind>>;

// The parameters that every device has.
const Parameter kLineRate{"line_rate", "Mbit/s", 0, 1e7, false};
const Parameter kMinTimeBetweenCnps{"min_time_between_cnps", "us", 0, 4095, false};
const Parameter kCnpDscp{"cnp_dscp", "", 0, 63, true};
const Parameter* const kCommon[] = {&kLineRate, &kMinTimeBetweenCnps, &kCnpDscp};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Names as a sentence has them: "a, b or c".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

// Returns what is wrong, or nothing.
std::string read_value(const Parameter& parameter, std::string_view text, double& value) {
  const char* const end = text.data() + text.size();
  double read = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, read);
  if (error == std::errc() && rest == end && read >= parameter.least && read <= parameter.most &&
      (!parameter.whole || read == std::floor(read))) {
    value = read;
    return {};
  }
  return parameter.name + ": " + quoted(text) + " is no " +
         (parameter.whole ? "whole number" : "number") + " from " + number(parameter.least) +
         " to " + number(parameter.most) +
         (parameter.unit.empty() ? "" : " (" + parameter.unit + ")");
}

void set_common(Settings& settings, const Parameter& parameter, double value) {
  if (&parameter == &kLineRate) {
    settings.line_rate_bps = static_cast<uint64_t>(value * kBitsPerMbit);
  } else if (&parameter == &kMinTimeBetweenCnps) {
    settings.notification.min_time_between_cnps_ns = static_cast<TimeNs>(value * kNsPerUs);
  } else {
    settings.notification.cnp_dscp = static_cast<uint8_t>(value);
  }
}

// Returns what is wrong, or nothing.
std::string choose(Settings& settings, std::string_view name, Kinds kinds) {
  if (name == kAdaptiveWindow || name == "none") return {};
  if (name.find('/') != name.npos) {
    LoadedPlugin loaded = load_plugin(std::string(name));
    settings.kind = std::move(loaded.kind);
    return loaded.error;
  }
  for (const auto& kind : kinds)
    if (kind->name == name) settings.kind = kind;
  if (settings.kind != nullptr) return {};
  std::vector<std::string> names{std::string(kAdaptiveWindow)};
  for (const auto& kind : kinds) names.push_back(kind->name);
  return quoted(name) + " is no congestion control; there is " + listed(names) +
         ", and a library's path with a / in it";
}

// Returns what is wrong, or nothing. An empty name: the first.
std::string take_preset(Settings& settings, std::string_view name) {
  if (settings.kind == nullptr)
    return name.empty() ? "" : std::string(kAdaptiveWindow) + " has no presets";
  std::vector<std::string> names;
  for (const Preset& preset : settings.kind->presets) {
    names.push_back(preset.name);
    if (!name.empty() && preset.name != name) continue;
    settings.preset = preset.name;
    settings.values = preset.values;
    settings.notification.min_time_between_cnps_ns =
        static_cast<TimeNs>(preset.min_time_between_cnps_us * kNsPerUs);
    return {};
  }
  return settings.kind->name + " has no preset " + quoted(name) + "; there is " + listed(names);
}

// Takes the text up to `separator`, or all of it, off its beginning.
std::string_view take_part(std::string_view& text, char separator) {
  const size_t length = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

}  // namespace

std::string_view Settings::name() const {
  return kind == nullptr ? kAdaptiveWindow : std::string_view(kind->name);
}

std::vector<NamedValue> Settings::parameters() const {
  std::vector<NamedValue> all;
  for (size_t i = 0; i < values.size(); ++i) all.push_back({kind->parameters[i].name, values[i]});
  all.push_back({kLineRate.name, static_cast<double>(line_rate_bps) / kBitsPerMbit});
  all.push_back({kMinTimeBetweenCnps.name,
                 static_cast<double>(notification.min_time_between_cnps_ns) / kNsPerUs});
  all.push_back({kCnpDscp.name, static_cast<double>(notification.cnp_dscp)});
  return all;
}

std::unique_ptr<Algorithm> Settings::make(Flow flow) const {
  if (kind == nullptr) return nullptr;
  if (line_rate_bps != 0) flow.line_rate_bps = line_rate_bps;
  return kind->make(values, flow);
}

std::string set_parameter(Settings& settings, std::string_view key, std::string_view text) {
  double value = 0;
  for (const Parameter* parameter : kCommon) {
    if (parameter->name != key) continue;
    const std::string error = read_value(*parameter, text, value);
    if (error.empty()) set_common(settings, *parameter, value);
    return error;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < settings.values.size(); ++i) {
    const Parameter& parameter = settings.kind->parameters[i];
    names.push_back(parameter.name);
    if (parameter.name == key) return read_value(parameter, text, settings.values[i]);
  }
  for (const Parameter* parameter : kCommon) names.push_back(parameter->name);
  return std::string(settings.name()) + " has no parameter " + quoted(key) + "; there is " +
         listed(names);
}

ParsedSettings parse_settings(std::string_view text, Kinds kinds) {
  Settings settings;
  std::string_view preset = take_part(text, ',');
  const bool is_path = preset.find('/') != preset.npos;
  const std::string_view name = is_path ? std::exchange(preset, {}) : take_part(preset, ':');
  std::string error = choose(settings, name, kinds);
  if (error.empty()) error = take_preset(settings, preset);
  while (error.empty() && !text.empty()) {
    std::string_view value = take_part(text, ',');
    const std::string_view key = take_part(value, '=');
    error = set_parameter(settings, key, value);
  }
  if (!error.empty()) return {std::nullopt, error};
  return {std::move(settings), {}};
}

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const Parameter* parameter : kCommon) names.push_back(parameter->name);
  for (const auto& kind : built_in())
    for (const Parameter& parameter : kind->parameters)
      if (std::ranges::find(names, parameter.name) == names.end()) names.push_back(parameter.name);
  return names;
}

}  // namespace rocemu::congestion
