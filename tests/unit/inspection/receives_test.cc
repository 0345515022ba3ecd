// Messages that come before receives.
#include "tests/unit/inspection/world.h"

using namespace rocemu;
using namespace rocemu::inspection;

TEST_CASE("How often the first message found no receive, and what it was asked to wait") {
  constexpr TimeNs kAsked = 640'000;  // timer code 12
  World world;
  Pair pair(world);
  pair.connect();
  pair.a.post(pair.at_a, message(pair.a, 1));
  world.fabric.at(2 * kAsked + kAsked / 2, [&] { pair.b.post_receive(pair.at_b, 2); });
  world.run();
  QpReport report = pair.b.report(pair.at_b);
  CHECK(report.receives.taken == 1);
  CHECK(report.receives.missing_before_first == 3);
  CHECK(report.waited_before_first_ns == 3 * kAsked);

  SECTION("a queue that ran dry later is another thing") {
    pair.a.post(pair.at_a, message(pair.a, 3));
    world.fabric.at(world.fabric.now_ns() + kAsked / 2, [&] { pair.b.post_receive(pair.at_b, 4); });
    world.run();
    report = pair.b.report(pair.at_b);
    CHECK(report.receives.taken == 2);
    CHECK(report.receives.missing_before_first == 3);
    CHECK(report.receives.missing == 4);
    CHECK(report.waited_ns == 4 * kAsked);
  }
  SECTION("a QP that was reset begins anew") {
    pair.a.reset(pair.at_a);
    pair.b.reset(pair.at_b);
    CHECK(pair.b.report(pair.at_b).receives.missing == 0);
    pair.connect();
    pair.a.post(pair.at_a, message(pair.a, 5));
    world.fabric.at(world.fabric.now_ns() + kAsked / 2, [&] { pair.b.post_receive(pair.at_b, 6); });
    world.run();
    CHECK(pair.b.report(pair.at_b).receives.missing_before_first == 1);
  }
}

TEST_CASE("Receives that are there in time leave nothing to say") {
  World world;
  Pair pair(world);
  pair.connect();
  pair.b.post_receive(pair.at_b, 2);
  pair.a.post(pair.at_a, message(pair.a, 1));
  world.run();
  const QpReport report = pair.b.report(pair.at_b);
  CHECK(report.receives.taken == 1);
  CHECK(report.receives.missing == 0);
}
