#include "verbs_shim/checker/report/selection.h"

#include <catch2/catch.hpp>

using rocemu::check::Selection;

TEST_CASE("which checks are on", "[checker]") {
  SECTION("all, by any of its names") {
    for (const char* text : {"", "1", "all"}) {
      const Selection selection(text);
      CHECK(selection.has("leaks"));
      CHECK(selection.has("fork"));
      CHECK(selection.unknown.empty());
    }
  }
  SECTION("some") {
    const Selection selection("leaks,fork");
    CHECK(selection.has("leaks"));
    CHECK(selection.has("fork"));
    CHECK_FALSE(selection.has("limits"));
  }
  SECTION("all but some") {
    for (const char* text : {"-leaks", "all,-leaks", "leaks,all,-leaks"}) {
      const Selection selection(text);
      CHECK_FALSE(selection.has("leaks"));
      CHECK(selection.has("fork"));
    }
  }
  SECTION("none") { CHECK_FALSE(Selection("all,-all").has("leaks")); }
  SECTION("what is unknown is named, and changes nothing") {
    const Selection selection("leaks,leeks");
    CHECK(selection.has("leaks"));
    CHECK(selection.unknown == "leeks");
  }
}
