#include "emulator/shake/common/settings.h"

#include <catch2/catch.hpp>

namespace rocemu::shake {

TEST_CASE("a shaken NIC does all there is, or what is named") {
  const auto all = parse_settings("");
  REQUIRE(all.settings);
  CHECK(all.settings->chosen.all());
  CHECK(all.settings->strength_percent == 50);
  CHECK(all.settings->seed == 0);
  CHECK(parse_settings("all").settings == all.settings);

  const auto two = parse_settings("placement,late-acks,strength=80,seed=7");
  REQUIRE(two.settings);
  CHECK(two.settings->chosen.count() == 2);
  CHECK(two.settings->has(Behaviour::placement));
  CHECK(two.settings->has(Behaviour::late_acks));
  CHECK(two.settings->strength_percent == 80);
  CHECK(two.settings->seed == 7);

  const auto without = parse_settings("-late-acks,-limits");
  REQUIRE(without.settings);
  CHECK(without.settings->chosen.count() == kBehaviours - 2);
  CHECK_FALSE(without.settings->has(Behaviour::late_acks));
  CHECK(parse_settings("seed=3").settings->chosen.all());
}

TEST_CASE("the text of settings is read as the same settings") {
  for (const char* text : {"all,seed=9", "-rnr,strength=1,seed=18446744073709551615",
                           "garbage,strength=100,seed=2", "scribble,events,numbers,seed=5"}) {
    const auto settings = parse_settings(text).settings;
    REQUIRE(settings);
    CAPTURE(to_text(*settings));
    CHECK(parse_settings(to_text(*settings)).settings == settings);
  }
  CHECK(to_text(*parse_settings("-rnr,seed=4").settings) == "all,-rnr,strength=50,seed=4");
}

TEST_CASE("what is wrong with the text is said in one line") {
  for (const char* text : {"placment", "-", "-all", "strength=0", "strength=101", "strength=x",
                           "seed=0", "seed=", "seed=-1", "placement,-placement", ",", "all,,"}) {
    CAPTURE(text);
    const ParsedSettings parsed = parse_settings(text);
    CHECK_FALSE(parsed.settings);
    CHECK_FALSE(parsed.error.empty());
    CHECK(parsed.error.find('\n') == std::string::npos);
  }
}

}  // namespace rocemu::shake
