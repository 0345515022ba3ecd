#include "impairment/assignment.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace rocemu::impairment {
namespace {

Assignment assignment_of(const std::string& text) {
  const ParsedAssignment parsed = parse_assignment(text);
  INFO(text << ": " << parsed.error);
  REQUIRE(parsed.assignment);
  return *parsed.assignment;
}

}  // namespace

TEST_CASE("a spec alone is for what every port sends") {
  const Assignment assignment = assignment_of("loss=1%,outage=1ms/1s");
  CHECK(assignment.port == kAllPorts);
  CHECK(assignment.covers(Direction::transmit));
  CHECK_FALSE(assignment.covers(Direction::receive));
  CHECK(assignment.spec.impairments.loss_ppm == 10'000);
}

TEST_CASE("a port and a direction in front") {
  CHECK(to_text(assignment_of("rocemu0:loss=1%")) == "rocemu0.tx:loss=1%");
  CHECK(to_text(assignment_of("rocemu0.tx:loss=1%")) == "rocemu0.tx:loss=1%");
  CHECK(to_text(assignment_of("rocemu11.rx:delay=1us")) == "rocemu11.rx:delay=1us");
  CHECK(to_text(assignment_of("all.both:dup=1%,seed=9")) == "all.both:dup=1%,seed=9");
  CHECK(*parse_assignment("rocemu0", "rx", "loss=1%").assignment ==
        assignment_of("rocemu0.rx:loss=1%"));
}

TEST_CASE("none without a direction clears both, with one that one") {
  CHECK(to_text(assignment_of("none")) == "all.both:none");
  CHECK(to_text(assignment_of("rocemu0:none")) == "rocemu0.both:none");
  CHECK(to_text(assignment_of("rocemu0.tx:none")) == "rocemu0.tx:none");
}

TEST_CASE("what is wrong with an assignment is named") {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row row = GENERATE(
      Row{":loss=1%", "'' is no device"}, Row{".tx:loss=1%", "'' is no device"},
      Row{"rocemu0.:loss=1%", "'.' is no direction; these are tx, rx and both"},
      Row{"rocemu0.up:loss=1%", "'up' is no direction"},
      Row{"rocemu0.tx.rx:loss=1%", "'tx.rx' is no direction"},
      Row{"loss=1%:rocemu0", "'loss=1%' is no device"}, Row{"a b:loss=1%", "'a b' is no device"},
      Row{"rocemu0.tx:", "no impairment is given"},
      Row{"rocemu0.tx=loss=1%", "no impairment 'rocemu0.tx'"},
      Row{"rocemu0:loss=1", "loss: '1' has no unit"}, Row{"", "no impairment"});
  const ParsedAssignment parsed = parse_assignment(row.text);
  INFO(row.text);
  CHECK_FALSE(parsed.assignment);
  CHECK_THAT(parsed.error, Catch::Contains(row.error));
}

TEST_CASE("each link has a seed of its own") {
  std::set<uint64_t> seeds;
  for (const uint64_t seed : {0u, 1u, 2u, 7u})
    for (uint32_t port = 0; port < 64; ++port)
      for (const Direction direction : kDirections) seeds.insert(link_seed(seed, port, direction));
  CHECK(seeds.size() == 4 * 64 * 2);
  CHECK(link_seed(7, 1, Direction::receive) == link_seed(7, 1, Direction::receive));
}

}  // namespace rocemu::impairment
