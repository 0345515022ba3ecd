#include "emulator/inspection/written_ranges.h"

#include <catch2/catch.hpp>

#include "tests/unit/inspection/world.h"

using namespace rocemu;
using namespace rocemu::inspection;

TEST_CASE("Ranges are known to the byte, and touching ones are one") {
  const int space = 0;
  const int other = 0;
  WrittenRanges ranges;
  ranges.add(&space, 100, 10);
  ranges.add(&space, 120, 10);
  CHECK(ranges.may_have(&space, 109, 1));
  CHECK_FALSE(ranges.may_have(&space, 110, 10));
  CHECK_FALSE(ranges.may_have(&space, 0, 100));
  CHECK(ranges.may_have(&space, 0, 101));
  CHECK_FALSE(ranges.may_have(&other, 100, 10));
  CHECK_FALSE(ranges.may_have(&space, 105, 0));
  ranges.add(&space, 110, 10);
  CHECK(ranges.may_have(&space, 115, 1));
  ranges.add(&space, ~uint64_t{0}, 100);
  CHECK(ranges.may_have(&space, ~uint64_t{0} - 5, 100));
}

TEST_CASE("Whoever writes in too many places counts as writing everywhere") {
  const int space = 0;
  WrittenRanges ranges;
  for (uint64_t i = 0; i <= WrittenRanges::kMaxRanges; ++i) ranges.add(&space, 0x1000 * i, 8);
  CHECK(ranges.may_have(&space, 0x123456789, 1));
  ranges.add(&space, 5, 5);
  CHECK(ranges.may_have(&space, 0x123456789, 1));
}

TEST_CASE("Too many programs: of those that are not known nothing is certain") {
  std::vector<char> spaces(WrittenRanges::kMaxSpaces + 2);
  WrittenRanges ranges;
  for (size_t i = 0; i <= WrittenRanges::kMaxSpaces; ++i) ranges.add(&spaces[i], 0x1000, 8);
  CHECK_FALSE(ranges.may_have(&spaces[0], 0x2000, 8));
  CHECK(ranges.may_have(&spaces[WrittenRanges::kMaxSpaces + 1], 0x2000, 8));
}

TEST_CASE("What a peer has written is known of its target alone") {
  World world;
  Pair pair(world);
  pair.connect();
  const auto may_be = [&](const Program& program, uint64_t offset) {
    return world.inspection.may_be_written(program.device, program.context, kBase + offset, 8);
  };
  CHECK_FALSE(may_be(pair.b, 0));
  pair.a.post(pair.at_a, reach(pair.a, pair.b, transport::WorkOpcode::write, 1, 64, 4096));
  pair.a.post(pair.at_a, reach(pair.a, pair.b, transport::WorkOpcode::read, 2, 64, 8192));
  pair.b.post_receive(pair.at_b, 3);
  pair.a.post(pair.at_a, message(pair.a, 4, 4));
  world.run();
  CHECK(may_be(pair.b, 4096));
  CHECK(may_be(pair.b, 4096 + 63));
  CHECK_FALSE(may_be(pair.b, 4096 + 64));
  CHECK_FALSE(may_be(pair.b, 8192));
  CHECK_FALSE(may_be(pair.b, 0));
  CHECK_FALSE(may_be(pair.a, 4096));
  CHECK(world.inspection.may_be_written(0, 4711, kBase, 8));
}
