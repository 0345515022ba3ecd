// ECN and trimming.
#include "tests/unit/network/network_stage.h"

namespace rocemu::network {
namespace {

// The CE marks of `count` frames of 1000 bytes that wait at one port: from two hosts, so that the
// queue has 0, 1, 2, ... frames behind the one that leaves.
std::vector<Came> through_queue(const EcnSettings& ecn, uint32_t count, uint8_t code,
                                uint64_t seed) {
  NetworkSettings settings;
  settings.seed = seed;
  settings.switches.ecn = ecn;
  settings.switches.buffer_bytes = 100'000'000;
  LinkSettings fast = kByteNs;
  fast.rate_bits_per_s *= 1000;
  Topology topology = star(2, fast);
  topology.links[1].settings = kByteNs;
  Stage stage(topology, settings);
  for (uint32_t i = 0; i < count; ++i) stage.send(0, {0, 1, 1000, 0, code});
  stage.run();
  REQUIRE(stage.came.size() == count);
  uint64_t marked = 0;
  for (const Came& one : stage.came) {
    CHECK(one.header_is_right());
    marked += one.ecn() == kCe;
  }
  CHECK(stage.sum(&PortCounters::marked) == (code == kCe ? 0 : marked));
  return stage.came;
}

uint64_t marks(const std::vector<Came>& came) {
  uint64_t count = 0;
  for (const Came& one : came) count += one.ecn() == kCe;
  return count;
}

}  // namespace

TEST_CASE("ECN: never up to kmin, always above kmax, by what a frame leaves behind") {
  // 11 frames: the first leaves an empty queue as the second comes, and the second 9 behind it.
  const auto came = through_queue({.kmin_bytes = 5000, .kmax_bytes = 5000}, 11, kEct0, 1);
  std::string pattern;
  for (const Came& one : came) pattern += one.ecn() == kCe ? 'x' : '.';
  CHECK(pattern == ".xxxx......");  // 9, 8, 7 and 6 frames behind
}

TEST_CASE("ECN: only of those that can, and CE stays") {
  CHECK(marks(through_queue({}, 10, 0, 1)) == 0);
  CHECK(marks(through_queue({}, 10, 1, 1)) == 8);
  CHECK(marks(through_queue({}, 10, kCe, 1)) == 10);
}

TEST_CASE("ECN: in between the probability is linear, up to pmax") {
  // The queue goes down from 2000 frames to none: from 1000 to 2000 a fifth at most, a tenth
  // on average.
  const auto came = through_queue(
      {.kmin_bytes = 1'000'000, .kmax_bytes = 2'000'000, .pmax_ppm = 200'000}, 2000, kEct0, 5);
  const auto part = [&](size_t first, size_t count) {
    return marks({came.begin() + first, came.begin() + first + count});
  };
  CHECK(part(0, 500) > 65);  // 17.5 % on average
  CHECK(part(0, 500) < 110);
  CHECK(part(500, 500) > 10);  // 5 %
  CHECK(part(500, 500) < 42);
  CHECK(part(1000, 1000) == 0);
  const auto again = through_queue(
      {.kmin_bytes = 1'000'000, .kmax_bytes = 2'000'000, .pmax_ppm = 200'000}, 2000, kEct0, 5);
  CHECK(std::ranges::equal(came, again, {}, &Came::ecn, &Came::ecn));
}

TEST_CASE("ECN: thresholds for a rate grow with the port's") {
  const auto came = through_queue(
      {.kmin_bytes = 1250, .kmax_bytes = 1250, .at_rate_bits_per_s = 2'000'000'000}, 11, kEct0, 1);
  CHECK(marks(came) == 4);
}

TEST_CASE("trimming: what has no room is cut to its headers, marked, and overtakes") {
  NetworkSettings settings;
  settings.switches.queue_limit_bytes = 2000;
  settings.switches.trim = TrimSettings{.keep_bytes = 100, .priority = 7, .dscp = 45};
  settings.switches.scheduling.strict = 0x80;
  Stage stage(star(5, kByteNs), settings);
  for (uint32_t i = 0; i < 4; ++i)
    stage.send(0, {i, 4, 1000, 0, kEct0, 0, static_cast<uint8_t>('a' + i)});
  stage.run();
  REQUIRE(stage.came.size() == 4);
  // 'd' is the fourth to come: 'a' is leaving, 'b' and 'c' fill the queue.
  const Came& trimmed = stage.came[1];
  CHECK(trimmed.tag() == 'd');
  CHECK(trimmed.at == 1100 + 1000 + 100 + 100);
  CHECK(trimmed.bytes.size() == 100);
  CHECK(trimmed.dscp() == 45);
  CHECK(trimmed.ecn() == kEct0);
  CHECK(trimmed.header_is_right());
  CHECK(load_be16(trimmed.bytes.data() + 16) == 86);
  CHECK(load_be16(trimmed.bytes.data() + 38) == 66);
  CHECK(stage.sum(&PortCounters::trimmed) == 1);
  CHECK(stage.lost.empty());
}

TEST_CASE("trimming: what is no UDP, or no longer than its headers, is lost") {
  NetworkSettings settings;
  settings.switches.queue_limit_bytes = 100;
  settings.switches.trim = TrimSettings{.keep_bytes = 100};
  Stage stage(star(5, kByteNs), settings);
  auto tcp = frame_of({0, 4});
  tcp[23] = std::byte{6};
  stage.send_bytes(0, 0, tcp);
  // Of three at once the first leaves, and the second fills the queue.
  for (uint32_t i = 1; i < 4; ++i) stage.send(900, {i, 4, 100});
  stage.run();
  CHECK(stage.lost_by(NetworkLoss::no_room) == 2);
  CHECK(stage.came.size() == 2);
  CHECK(stage.sum(&PortCounters::trimmed) == 0);
}

TEST_CASE("switches with settings of their own mark, cut and make room by these") {
  // Through two switches; the first is where frames wait.
  LinkSettings fast = kByteNs;
  fast.rate_bits_per_s *= 1000;
  const Topology topology = dumbbell(1, 1, {fast, kByteNs});
  const auto of_node = [&](const std::string& name) {
    uint32_t node = 0;
    while (topology.nodes[node].name != name) ++node;
    return node;
  };
  NetworkSettings settings;
  settings.switches.ecn = EcnSettings{};
  settings.switches.queue_limit_bytes = 5000;
  settings.switches.trim = TrimSettings{.keep_bytes = 100};
  SwitchSettings own = settings.switches;
  const auto send = [&](const std::string& name) {
    settings.other_switches = {{of_node(name), own}};
    auto stage = std::make_unique<Stage>(topology, settings);
    for (int i = 0; i < 20; ++i) stage->send(0, {0, 1, 1000, 0, kEct0});
    stage->run();
    return stage;
  };
  SECTION("no marks") {
    own.ecn->on = false;
    CHECK(send("s0")->sum(&PortCounters::marked) == 0);
    CHECK(send("s1")->sum(&PortCounters::marked) > 0);
  }
  SECTION("nothing is cut") {
    own.trim->on = false;
    CHECK(send("s0")->sum(&PortCounters::trimmed) == 0);
    CHECK(send("s1")->sum(&PortCounters::trimmed) > 0);
  }
  SECTION("more room") {
    own.queue_limit_bytes = 100'000;
    CHECK(send("s0")->sum(&PortCounters::trimmed) == 0);
    CHECK(send("s1")->sum(&PortCounters::trimmed) > 0);
  }
}

}  // namespace rocemu::network
