#include "verbs_shim/checker/report/suppressions.h"

#include <catch2/catch.hpp>

using namespace rocemu::check;

TEST_CASE("a pattern is part of a name", "[checker]") {
  CHECK(matches("pool", "make_pool_of"));
  CHECK_FALSE(matches("pool", "poo"));
  CHECK(matches("^make", "make_pool"));
  CHECK_FALSE(matches("^pool", "make_pool"));
  CHECK(matches("pool$", "make_pool"));
  CHECK_FALSE(matches("make$", "make_pool"));
  CHECK(matches("^make*pool$", "make_a_pool"));
  CHECK_FALSE(matches("^make*pool$", "make_a_pool_of"));
  CHECK(matches("*", ""));
  CHECK(matches("a*b*c", "xxaxxbxxcxx"));
  CHECK_FALSE(matches("a*b*c", "acb"));
}

TEST_CASE("suppressions cover findings by name and frame", "[checker]") {
  Suppressions suppressions;
  REQUIRE(suppressions.parse(
              "# known\n\nleaks:^make_pool$  # ours\n*:libold\ncq-too-small:bench/*.c") == "");
  const auto frame = [](const char* function, const char* file, const char* module) {
    SourcePlace place;
    place.function = function;
    place.file = file;
    place.module = module;
    return std::vector<SourcePlace>{place};
  };
  CHECK(suppressions.covers("leaks", frame("make_pool", "", "")));
  CHECK_FALSE(suppressions.covers("leaks", frame("make_pools", "", "")));
  CHECK_FALSE(suppressions.covers("fork", frame("make_pool", "", "")));
  CHECK(suppressions.covers("fork", frame("", "", "/usr/lib/libold.so.1")));
  CHECK(suppressions.covers("cq-too-small", frame("run", "/src/bench/send.c", "")));
  CHECK_FALSE(suppressions.covers("cq-too-small", {}));
}

TEST_CASE("a suppression that says nothing sensible is told by its line", "[checker]") {
  Suppressions suppressions;
  CHECK(suppressions.parse("leaks:a\nleaks\n:b\n").starts_with("2: a suppression is "));
  CHECK(suppressions.parse("leaks:").starts_with("1: "));
  CHECK(suppressions.parse("leaks:a\nleeks:b") == "2: there is no check 'leeks'");
  CHECK_FALSE(suppressions.read("/nowhere/known.txt").empty());
}
