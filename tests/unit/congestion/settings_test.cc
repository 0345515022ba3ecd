// Which congestion control a device has, as text.
#include "emulator/congestion/settings.h"

#include <array>
#include <catch2/catch.hpp>

namespace rocemu::congestion {

namespace {

class Steady final : public Algorithm {
 public:
  explicit Steady(uint64_t rate_bps) : rate_bps_(rate_bps) {}
  uint64_t rate_bps() const override { return rate_bps_; }

 private:
  uint64_t rate_bps_;
};

// A kind whose algorithms send at so many percent of the line's rate.
const std::array<std::shared_ptr<const AlgorithmKind>, 1> kKinds{
    std::make_shared<AlgorithmKind>(AlgorithmKind{
        .name = "steady",
        .needs = {.ecn = true},
        .parameters = {{"share", "%", 1, 100}, {"steps", "", 0, 10, true}},
        .presets = {{"half", {50, 1}}, {"paper", {25, 2}, 50}},
        .make = [](std::span<const double> values, const Flow& flow) -> std::unique_ptr<Algorithm> {
          return std::make_unique<Steady>(
              static_cast<uint64_t>(static_cast<double>(flow.line_rate_bps) * values[0] / 100));
        }})};

const std::string kOrAPath = ", and a library's path with a / in it";

Settings good(std::string_view text) {
  const ParsedSettings parsed = parse_settings(text, kKinds);
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  return *parsed.settings;
}

std::string error_of(std::string_view text) {
  const ParsedSettings parsed = parse_settings(text, kKinds);
  REQUIRE_FALSE(parsed.settings);
  return parsed.error;
}

}  // namespace

TEST_CASE("without an algorithm there is the adaptive window") {
  for (const char* text : {"none", "adaptive_window", "none,cnp_dscp=46"}) {
    const Settings settings = good(text);
    CHECK(settings.kind == nullptr);
    CHECK(settings.name() == "adaptive_window");
    CHECK(settings.make({}) == nullptr);
  }
  CHECK(good("none,cnp_dscp=46").notification.cnp_dscp == 46);
}

TEST_CASE("an algorithm has the values of its first preset unless another one is named") {
  CHECK(good("steady").preset == "half");
  CHECK(good("steady").values == std::vector<double>{50, 1});
  CHECK(good("steady").notification.min_time_between_cnps_ns == 4'000);
  CHECK(good("steady:paper").values == std::vector<double>{25, 2});
  CHECK(good("steady:paper").notification.min_time_between_cnps_ns == 50'000);
}

TEST_CASE("parameters change the preset's values, and those that every device has") {
  const Settings settings =
      good("steady:paper,share=12.5,min_time_between_cnps=2.5,line_rate=1000");
  CHECK(settings.values == std::vector<double>{12.5, 2});
  CHECK(settings.notification.min_time_between_cnps_ns == 2'500);
  CHECK(settings.make({.line_rate_bps = 40})->rate_bps() == 125'000'000);
  CHECK(good("steady").make({.line_rate_bps = 40})->rate_bps() == 20);
}

TEST_CASE("what is wrong with a text is said with what is allowed") {
  CHECK(error_of("") ==
        "'' is no congestion control; there is adaptive_window or steady" + kOrAPath);
  CHECK(error_of("cubic") ==
        "'cubic' is no congestion control; there is adaptive_window or steady" + kOrAPath);
  CHECK(error_of("steady:best") == "steady has no preset 'best'; there is half or paper");
  CHECK(error_of("none:paper") == "adaptive_window has no presets");
  CHECK(error_of("steady,share=101") == "share: '101' is no number from 1 to 100 (%)");
  CHECK(error_of("steady,share=nan") == "share: 'nan' is no number from 1 to 100 (%)");
  CHECK(error_of("steady,share") == "share: '' is no number from 1 to 100 (%)");
  CHECK(error_of("steady,steps=1.5") == "steps: '1.5' is no whole number from 0 to 10");
  CHECK(error_of("steady,speed=1") ==
        "steady has no parameter 'speed'; there is share, steps, line_rate, "
        "min_time_between_cnps or cnp_dscp");
  CHECK(error_of("none,share=1") ==
        "adaptive_window has no parameter 'share'; there is line_rate, min_time_between_cnps or "
        "cnp_dscp");
}

}  // namespace rocemu::congestion
