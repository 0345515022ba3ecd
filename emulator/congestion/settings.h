// Settings say which congestion control a device has, with its parameters, as text and as values.
//
//   NAME[:PRESET][,KEY=VALUE]...          dcqcn:paper,rpg_ai_rate=40
//
//   PATH[,KEY=VALUE]...                   ./libmine.so,gain=0.5      (a / tells it from a name)
//
// Without an algorithm ("adaptive_window", or "none") a QP has the window of adaptive_window.h,
// which losses narrow and no mark does. KEY is a parameter of the algorithm, or one that every
// device has: line_rate, min_time_between_cnps, cnp_dscp.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

// NotificationSettings say what a device does about marks that it receives, whatever its own
// algorithm is.
struct NotificationSettings {
  TimeNs min_time_between_cnps_ns = 4'000;  // within one flow
  uint8_t cnp_dscp = 48;                    // the one that CNPs are sent with
};

struct Settings {
  std::shared_ptr<const AlgorithmKind> kind = nullptr;  // null: the adaptive window
  std::string preset = {};
  std::vector<double> values = {};  // one for each parameter of the kind
  uint64_t line_rate_bps = 0;       // 0: that of the device's link
  NotificationSettings notification = {};

  std::string_view name() const;
  // The parameters as they are in force.
  std::vector<NamedValue> parameters() const;
  // Null without an algorithm, or when a library has no memory for one. `flow`: its line rate is
  // replaced by the settings', if that is set.
  std::unique_ptr<Algorithm> make(Flow flow) const;
};

inline constexpr std::string_view kAdaptiveWindow = "adaptive_window";

// All kinds that are built in.
std::span<const std::shared_ptr<const AlgorithmKind>> built_in();

struct ParsedSettings {
  std::optional<Settings> settings;
  std::string error;  // one line that names what is wrong and what is allowed
};

ParsedSettings parse_settings(
    std::string_view text,
    std::span<const std::shared_ptr<const AlgorithmKind>> kinds = built_in());

// Sets one parameter; returns what is wrong, or nothing.
std::string set_parameter(Settings& settings, std::string_view key, std::string_view value);

// The names of all parameters of all kinds that are built in, and of those that every device has.
std::vector<std::string> parameter_names();

}  // namespace rocemu::congestion
