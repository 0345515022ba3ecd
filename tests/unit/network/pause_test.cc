#include "tests/unit/network/network_stage.h"

namespace rocemu::network {
namespace {

// Two hosts send to a third at a tenth of their rate.
Topology funnel() {
  LinkSettings fast = kByteNs;
  fast.rate_bits_per_s *= 10;
  Topology topology = star(3, fast);
  topology.links[2].settings = kByteNs;
  return topology;
}

NetworkSettings lossless(uint64_t xoff_bytes, uint64_t xon_bytes) {
  NetworkSettings settings;
  settings.switches.pfc = {.lossless = 1, .xoff_bytes = xoff_bytes, .xon_bytes = xon_bytes};
  return settings;
}

constexpr uint32_t kHost0 = 0;    // its port, and …
constexpr uint32_t kIngress = 1;  // … the switch's at the other end

}  // namespace

TEST_CASE("PFC: pauses at exactly the threshold, resumes at exactly the other") {
  Stage stage(funnel(), lossless(3000, 1000));
  // The first leaves as it comes; frames come every 100 ns from 200 on.
  for (int i = 0; i < 20; ++i) stage.send(0, {0, 2});
  stage.run(499);
  CHECK(stage.network.counters(kIngress).pauses_sent == 0);
  stage.run(500);  // the fourth: three are in the switch
  CHECK(stage.network.counters(kIngress).pauses_sent == 1);
  // A pause is 64 bytes at 10 bytes/ns, and the delay: it comes at 606, and the frame that began at
  // 600 is the seventh and goes on.
  stage.run(605);
  CHECK(stage.network.paused_ns(kHost0, 605) == 0);
  CHECK(stage.network.counters(kHost0).pauses_received == 0);
  stage.run(606);
  CHECK(stage.network.counters(kHost0).pauses_received == 1);
  CHECK(stage.network.counters(kHost0).frames == 7);
  CHECK(stage.network.paused_ns(kHost0, 1106) == 500);
  // The second frame leaves the switch at 1200, the third at 2200, and at 5200 one is left.
  stage.run(5199);
  CHECK(stage.network.counters(kIngress).resumes_sent == 0);
  stage.run(5200);
  CHECK(stage.network.counters(kIngress).resumes_sent == 1);
  stage.run(5305);
  CHECK(stage.network.counters(kHost0).frames == 7);
  stage.run(5306);
  CHECK(stage.network.counters(kHost0).frames == 8);
  CHECK(stage.network.paused_ns(kHost0, 5306) == 4700);
  stage.run();
  CHECK(stage.came.size() == 20);
  CHECK(stage.lost.empty());
}

TEST_CASE("PFC: other priorities go on, and are lossy") {
  NetworkSettings settings = lossless(2000, 1000);
  settings.switches.queue_limit_bytes = 3000;
  Stage stage(funnel(), settings);
  for (int i = 0; i < 10; ++i) stage.send(0, {0, 2});
  stage.run(2000);
  for (int i = 0; i < 10; ++i) stage.send(2000, {0, 2, 1000, 8});
  stage.run(3500);
  CHECK(stage.network.paused_ns(kHost0, 3500) > 0);
  CHECK(stage.network.queue_bytes(kHost0, 0) > 0);
  CHECK(stage.network.queue_bytes(kHost0, 1) == 0);
  CHECK(stage.lost_by(NetworkLoss::no_room) > 0);
  stage.run();
  CHECK(stage.lost_by(NetworkLoss::no_headroom) == 0);
}

TEST_CASE("PFC: the headroom that a cable needs by itself is enough, less is not") {
  NetworkSettings settings = lossless(2000, 1000);
  const auto run = [&settings] {
    LinkSettings fast = kByteNs;
    fast.rate_bits_per_s *= 10;
    fast.delay_ns = 10'000;
    Topology topology = star(3, fast);
    topology.links[2].settings = kByteNs;
    Stage stage(topology, settings);
    for (uint32_t i = 0; i < 1000; ++i) stage.send(0, {i % 2, 2, 4000});
    stage.run();
    CHECK(stage.came.size() + stage.lost.size() == 1000);
    return stage.lost_by(NetworkLoss::no_headroom);
  };
  CHECK(run() == 0);
  settings.switches.pfc.headroom_bytes = 100'000;
  CHECK(run() > 0);
}

TEST_CASE("PFC: a pause ends by itself, and is repeated while it is needed") {
  NetworkSettings settings = lossless(2000, 0);
  settings.switches.pfc.quanta = GENERATE(uint16_t{1}, uint16_t{100});  // 640 ns at 80 Gbit/s
  Stage stage(funnel(), settings);
  for (int i = 0; i < 6; ++i) stage.send(0, {0, 2});
  stage.run();
  CHECK(stage.network.counters(kIngress).pauses_sent > 5);
  CHECK(stage.network.counters(kIngress).resumes_sent >= 1);
  CHECK(stage.came.size() == 6);
}

TEST_CASE("PFC: the threshold of alpha goes down as the buffer fills") {
  NetworkSettings settings;
  settings.switches.pfc = {
      .lossless = 1, .alpha_ppm = 500'000, .resume_offset_bytes = 2000, .headroom_bytes = 20'000};
  settings.switches.buffer_bytes = 3 * 20'000 + 9000;
  Stage stage(funnel(), settings);
  for (int i = 0; i < 30; ++i) stage.send(0, {0, 2});
  // With 3000 bytes 6000 are free, and a half of that is 3000.
  stage.run(499);
  CHECK(stage.network.counters(kIngress).pauses_sent == 0);
  stage.run(500);
  CHECK(stage.network.counters(kIngress).pauses_sent == 1);
  stage.run();
  CHECK(stage.came.size() == 30);
}

TEST_CASE("PFC: congestion spreads, from switch to switch to the host") {
  NetworkSettings settings = lossless(20'000, 10'000);
  LinkSettings slow = kByteNs;
  slow.rate_bits_per_s /= 10;
  Topology topology = dumbbell(2, 2, {kByteNs, kByteNs});
  topology.links[2].settings = slow;  // host 2
  Stage stage(topology, settings);
  for (uint32_t i = 0; i < 200; ++i) stage.send(i * 1000, {0, 2});
  for (uint32_t i = 200; i < 300; ++i) stage.send(i * 1000, {1, 3});
  const uint32_t left_to_right = port_of_link(4, false);
  CHECK(stage.network.paused_ns(left_to_right, 300'000) > 0);
  CHECK(stage.network.paused_ns(kHost0, 300'000) > 0);
  stage.run();
  CHECK(stage.came.size() == 300);
  CHECK(stage.lost.empty());
}

TEST_CASE("PFC: a link that comes back knows of no pause") {
  NetworkSettings settings = lossless(3000, 1000);
  settings.failures = {{.link = 0, .down_ns = 1000, .up_ns = 1500}};
  Stage stage(funnel(), settings);
  for (int i = 0; i < 20; ++i) stage.send(0, {0, 2});
  stage.run(1400);
  CHECK(stage.network.queue_bytes(kHost0, 0) == 0);
  CHECK(stage.lost_by(NetworkLoss::link_down) == 13);
  stage.send(1600, {0, 2, 1000, 0, 0, 0, 'z'});
  stage.run();
  CHECK(stage.came.back().tag() == 'z');
  CHECK(stage.network.packets() == 0);
}

TEST_CASE("PFC: of the switches that have it, and for as long as its sender says") {
  LinkSettings fast = kByteNs;
  fast.rate_bits_per_s *= 10;
  const Topology topology = dumbbell(1, 1, {fast, kByteNs});
  const auto send = [&](const NetworkSettings& settings) {
    auto stage = std::make_unique<Stage>(topology, settings);
    for (int i = 0; i < 20; ++i) stage->send(0, {0, 1});
    stage->run();
    return stage;
  };
  uint32_t first_switch = 0;
  while (topology.nodes[first_switch].name != "s0") ++first_switch;
  NetworkSettings settings;
  settings.other_switches[first_switch] = lossless(3000, 1000).switches;
  CHECK(send(settings)->sum(&PortCounters::pauses_sent) > 0);
  std::swap(settings.switches, settings.other_switches[first_switch]);
  CHECK(send(settings)->sum(&PortCounters::pauses_sent) == 0);

  // A pause of 512 bit times, 6 ns here, has to be repeated all the time; the usual settings, those
  // of the host's port, say a longer one.
  settings = lossless(3000, 1000);
  settings.other_switches[first_switch] = settings.switches;
  settings.other_switches[first_switch].pfc.quanta = 1;
  CHECK(send(settings)->sum(&PortCounters::pauses_sent) >
        10 * send(lossless(3000, 1000))->sum(&PortCounters::pauses_sent));
}

// Both hosts at the left send to the right, where host 2 pauses all that comes to it.
TEST_CASE("a storm of pauses spreads as far as PFC goes, and not to those behind other links") {
  const bool everywhere = GENERATE(true, false);
  NetworkSettings settings = lossless(20'000, 10'000);
  const Topology topology = dumbbell(2, 2, {kByteNs, kByteNs});
  if (!everywhere) {
    uint32_t first_switch = 0;
    while (topology.nodes[first_switch].name != "s0") ++first_switch;
    settings.other_switches[first_switch] = SwitchSettings{};
  }
  Stage stage(topology, settings);
  const uint32_t left_to_right = port_of_link(4, false);
  stage.network.storm(2, 0, true, false);
  for (uint32_t i = 0; i < 100; ++i) stage.send(i * 1000, {0, 2});
  stage.run(300'000);
  CHECK(stage.came.empty());
  CHECK(stage.lost.empty());
  CHECK(stage.network.counters(port_of_link(2, false)).pauses_sent > 0);
  CHECK(stage.network.paused_ns(left_to_right, 300'000) > 200'000);
  CHECK((stage.network.paused_ns(kHost0, 300'000) > 200'000) == everywhere);
  stage.network.storm(2, 300'000, false, false);
  stage.run();
  CHECK(stage.came.size() == 100);
  CHECK(stage.lost.empty());
  CHECK(stage.network.packets() == 0);
}

TEST_CASE(
    "a storm of pauses is for all priorities, lossless or not, in the direction that is said") {
  Stage stage(star(2, kByteNs), {});
  const bool received = GENERATE(true, false);
  stage.network.storm(1, 0, received, !received);
  stage.send(1000, {0, 1, 1000, 8});
  stage.send(1000, {1, 0});
  stage.run(100'000'000);
  REQUIRE(stage.came.size() == 1);
  CHECK(stage.came[0].host == (received ? 0 : 1));
  CHECK(stage.came[0].at == 3200);
  // Said twice is said once.
  stage.network.storm(1, 100'000'000, received, !received);
  stage.network.storm(1, 100'000'000, false, false);
  stage.network.storm(1, 100'000'000, false, false);
  stage.run();
  CHECK(stage.came.size() == 2);
}

TEST_CASE("a storm of pauses goes on when its link comes back") {
  NetworkSettings settings;
  settings.failures = {{.link = 1, .down_ns = 10'000, .up_ns = 20'000}};
  Stage stage(star(2, kByteNs), settings);
  stage.network.storm(1, 0, true, false);
  stage.run(30'000);
  stage.send(30'000, {0, 1});
  stage.run(100'000'000);
  CHECK(stage.came.empty());
  stage.network.storm(1, 100'000'000, false, false);
  stage.run();
  CHECK(stage.came.size() == 1);
}

TEST_CASE("a storm of pauses and one that the buffer needs end when both are over") {
  // Host 0's link is paused by the switch, as the storm says; and later for the bytes it has there.
  Stage stage(funnel(), lossless(3000, 1000));
  for (int i = 0; i < 20; ++i) stage.send(0, {0, 2});
  stage.run(1000);
  stage.network.storm(0, 1000, false, true);
  stage.run(30'000);
  CHECK(stage.came.size() == 7);  // as many as had left by the first pause
  stage.network.storm(0, 30'000, false, false);
  stage.run();
  CHECK(stage.came.size() == 20);
  CHECK(stage.lost.empty());
}

}  // namespace rocemu::network
