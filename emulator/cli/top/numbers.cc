#include "emulator/cli/top/numbers.h"

#include <cmath>
#include <cstdio>

namespace rocemu::cli::top {
namespace {

// One digit behind the point below 100, none from there on.
std::string scaled(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), value < 99.95 ? "%.1f%s" : "%.0f%s", value, unit);
  return text;
}

std::string whole(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.0f%s", value, unit);
  return text;
}

}  // namespace

std::string short_number(double value) {
  if (!(value >= 0)) return "?";
  if (value < 999.5) {
    // A rate below one is not nothing.
    return value > 0 && value < 0.95 ? scaled(value < 0.05 ? 0.1 : value, "") : whole(value, "");
  }
  for (const char* unit : {"k", "M", "G"}) {
    value /= 1000;
    if (value < 999.5) return scaled(value, unit);
  }
  return scaled(value / 1000, "T");
}

std::string short_time(double time_us) {
  if (!(time_us >= 0)) return "?";
  if (time_us < 999.5) return whole(time_us, "us");
  if (time_us < 999.5e3) return scaled(time_us / 1e3, "ms");
  const double time_s = time_us / 1e6;
  if (time_s < 120) return scaled(time_s, "s");
  if (time_s < 120 * 60) return whole(std::floor(time_s / 60), "m");
  if (time_s < 48 * 3600) return whole(std::floor(time_s / 3600), "h");
  return whole(std::floor(time_s / 86400), "d");
}

std::string clock_time(double time_s) {
  if (!(time_s >= 0) || time_s > 1e12) return "?";
  const auto s = static_cast<long long>(time_s);
  char text[64];
  std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", s / 3600 % 24, s / 60 % 60, s % 60);
  return (s >= 86400 ? std::to_string(s / 86400) + "d " : "") + text;
}

}  // namespace rocemu::cli::top
