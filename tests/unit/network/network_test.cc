#include "network/switching/network.h"

#include <string>

#include "tests/unit/network/network_stage.h"

namespace rocemu::network {
namespace {

std::string tags(const std::vector<Came>& came) {
  std::string text;
  for (const Came& one : came) text += static_cast<char>(one.tag());
  return text;
}

}  // namespace

TEST_CASE("a cable takes a frame's time and its delay, and the next frame waits for the first") {
  Stage stage(pair(kByteNs), {});
  stage.send(10, {0, 1, 1000, 0, 0, 0, 'a'});
  stage.send(10, {0, 1, 500, 0, 0, 0, 'b'});
  CHECK(stage.network.queue_bytes(0, 0) == 500);
  stage.run();
  REQUIRE(tags(stage.came) == "ab");
  CHECK(stage.came[0].at == 10 + 1000 + 100);
  CHECK(stage.came[1].at == 10 + 1500 + 100);
  CHECK(stage.came[0].host == 1);
  CHECK(stage.network.packets() == 0);
}

TEST_CASE("a switch stores a frame before it goes on") {
  Stage stage(star(3, kByteNs), {});
  stage.send(0, {0, 2, 1000, 0, 0, 0, 'a'});
  stage.send(0, {1, 2, 1000, 0, 0, 0, 'b'});
  stage.run();
  REQUIRE(tags(stage.came) == "ab");
  CHECK(stage.came[0].at == 2 * 1100);
  CHECK(stage.came[1].at == 2 * 1100 + 1000);  // waits at the switch's port
  // Port 5 is the switch's port at the third link.
  CHECK(stage.network.counters(5).queue_max_bytes[0] == 1000);
  CHECK(stage.network.counters(5).bytes == 2000);
}

TEST_CASE("a frame's overhead takes time on the cable and no room in a queue") {
  NetworkSettings settings;
  settings.overhead_bytes = 24;
  Stage stage(pair(kByteNs), settings);
  for (int i = 0; i < 2; ++i) stage.send(0, {0, 1});
  CHECK(stage.network.queue_bytes(0, 0) == 1000);
  stage.run();
  CHECK(stage.came[1].at == 2 * 1024 + 100);
}

TEST_CASE("a lossy queue ends at its limit, or at alpha times what is free") {
  NetworkSettings settings;
  SECTION("fixed") { settings.switches.queue_limit_bytes = 3000; }
  SECTION("of 9000 bytes: 3 in the queue leave 6000, and a half of that has no fourth") {
    settings.switches.buffer_bytes = 9000;
    settings.switches.alpha_ppm = 500'000;
  }
  // The headroom is for lossless priorities, of which there is none.
  Stage stage(star(6, kByteNs), settings);
  for (uint32_t i = 0; i < 5; ++i) stage.send(0, {i, 5});
  stage.run();
  // The first leaves at once, three wait, and the fifth finds no room.
  CHECK(stage.came.size() == 4);
  CHECK(stage.lost_by(NetworkLoss::no_room) == 1);
  CHECK(stage.network.counters(11).queue_max_bytes[0] == 3000);
}

TEST_CASE("frames to nobody, to everybody, to oneself, and to bridges") {
  Stage stage(leaf_spine(2, 2, 2, {kByteNs, kByteNs}), {});
  stage.send(0, {0, 9});
  CHECK(stage.lost_by(NetworkLoss::unknown_destination) == 1);
  stage.send(5, {1, 1});
  REQUIRE(stage.came.size() == 1);
  CHECK(stage.came[0].host == 1);
  CHECK(stage.came[0].at == 5);
  auto broadcast = frame_of({0, 0});
  std::fill_n(broadcast.begin(), 6, std::byte{0xff});
  stage.send_bytes(10, 0, broadcast);
  stage.run();
  std::vector<unsigned> copies(4);
  for (const Came& one : stage.came) ++copies[one.host];
  CHECK(copies == std::vector<unsigned>{0, 2, 1, 1});
  CHECK(stage.network.packets() == 0);
}

TEST_CASE("learned MACs: flooded until their host has sent") {
  Stage stage(star(3, kByteNs), {});
  stage.network.learn_macs();
  stage.send_bytes(10, 0, frame_of({7, 8}));
  stage.run();
  CHECK(stage.came.size() == 2);
  stage.came.clear();
  stage.send_bytes(20'000, 1, frame_of({8, 7}));
  stage.run();
  REQUIRE(stage.came.size() == 1);
  CHECK(stage.came[0].host == 0);
}

TEST_CASE("short, odd and forged frames harm nobody") {
  NetworkSettings settings;
  settings.switches.pfc.lossless = 0xff;
  settings.switches.trim = TrimSettings{.keep_bytes = 64};
  settings.switches.ecn = EcnSettings{};
  Stage stage(star(3, kByteNs), settings);
  std::vector<std::byte> pause(60);
  store_be32(pause.data(), 0x0180c200);
  store_be16(pause.data() + 4, 1);
  store_be16(pause.data() + 12, 0x8808);
  store_be16(pause.data() + 14, 0x0101);
  for (size_t i = 16; i < 34; ++i) pause[i] = std::byte{0xff};
  stage.send_bytes(0, 0, pause);
  CHECK(stage.lost_by(NetworkLoss::not_forwarded) == 1);
  const auto whole = frame_of({0, 1, 90, 0, kEct0});
  for (size_t length = 0; length < whole.size(); ++length)
    stage.send_bytes(0, 0, std::span(whole).first(length));
  for (unsigned value = 0; value < 256; ++value)
    for (const size_t at : {12, 13, 14, 15, 20, 23}) {
      auto odd = whole;
      odd[at] = static_cast<std::byte>(value);
      stage.send_bytes(0, 0, odd);
    }
  stage.run();
  CHECK(stage.lost_by(NetworkLoss::malformed) == 14);
  CHECK(stage.came.size() == 90 - 14 + 256 * 6);
  CHECK(stage.sum(&PortCounters::pauses_received) == stage.sum(&PortCounters::pauses_sent));
}

TEST_CASE("frames inside a network are bounded, and so is a host's queue") {
  struct Owner {
    void deliver(uint32_t, TimeNs, const SharedFrame&) {}
    void lose(uint32_t, NetworkLoss loss, const SharedFrame&) { lost.push_back(loss); }
    std::vector<NetworkLoss> lost;
  };
  Owner owner;
  NetworkSettings settings;
  settings.host_queue_bytes = 2000;
  Network<SharedFrames, Owner> network(pair(kByteNs), settings, owner, 5);
  network.add_mac(mac_number({2, 0, 0, 0, 0, 0}), 0);
  network.add_mac(mac_number({2, 0, 0, 0, 0, 1}), 1);
  for (int i = 0; i < 4; ++i) network.send(0, 0, SharedFrame(frame_of({0, 1})));
  CHECK(owner.lost == std::vector{NetworkLoss::host_queue_full});
  for (int i = 0; i < 3; ++i) network.send(1, 0, SharedFrame(frame_of({1, 0})));
  CHECK(owner.lost.back() == NetworkLoss::too_many);
  CHECK(owner.lost.size() == 2);
}

TEST_CASE("links lose by chance what they are set to, each direction by itself") {
  LinkSettings lossy = kByteNs;
  lossy.loss_ppm = 250'000;
  Stage stage(pair(lossy), {});
  for (uint32_t i = 0; i < 1000; ++i) stage.send(i * 2000, {i % 2, 1 - i % 2});
  stage.run();
  CHECK(stage.lost_by(NetworkLoss::chance) > 200);
  CHECK(stage.lost_by(NetworkLoss::chance) < 300);
  CHECK(stage.came.size() + stage.lost.size() == 1000);
}

TEST_CASE("a link that is down loses what is on it and what waits for it, and paths avoid it") {
  // Hosts 0 and 1 at leaf 0 and 1; links: two to hosts, then leaf0-spine0, leaf0-spine1, ...
  NetworkSettings settings;
  settings.failures = {{.link = 2, .down_ns = 5000, .up_ns = 20'000, .every_ns = 100'000},
                       {.link = 3, .down_ns = 5000, .up_ns = 9000}};
  settings.reroute_ns = 1000;
  Stage stage(leaf_spine(2, 2, 1, {kByteNs, kByteNs}), settings);
  const auto sends = [&](TimeNs now) {
    const size_t before = stage.came.size();
    for (uint16_t flow = 0; flow < 20; ++flow) stage.send(now, {0, 1, 60, 0, 0, flow});
    stage.run(now + 3000);
    return stage.came.size() - before;
  };
  CHECK(sends(0) == 20);
  // In the middle of it.
  const auto at_4500 = sends(4500);
  CHECK(at_4500 > 0);
  CHECK(at_4500 < 20);
  CHECK(sends(8000) < 20);  // both are down, the paths have gone
  CHECK(stage.lost_by(NetworkLoss::no_route) + stage.lost_by(NetworkLoss::link_down) > 20);
  CHECK(sends(12'000) == 20);  // by the one that is back
  CHECK_FALSE(stage.network.link_up(2));
  CHECK(sends(30'000) == 20);
  CHECK(stage.network.link_up(2));
  stage.network.advance(106'000);
  CHECK_FALSE(stage.network.link_up(2));
  stage.network.advance(121'000);
  CHECK(stage.network.link_up(2));
  CHECK(stage.network.packets() == 0);
}

TEST_CASE("a link that fails with a reroute to come is a black hole until then") {
  NetworkSettings settings;
  settings.failures = {{.link = 2, .down_ns = 1000, .up_ns = 1'000'000}};
  settings.reroute_ns = 10'000;
  Stage stage(leaf_spine(2, 2, 1, {kByteNs, kByteNs}), settings);
  for (uint16_t flow = 0; flow < 100; ++flow) stage.send(2000, {0, 1, 60, 0, 0, flow});
  stage.run(10'900);
  const size_t lost = stage.lost_by(NetworkLoss::link_down);
  CHECK(lost > 30);
  CHECK(lost < 70);
  for (uint16_t flow = 0; flow < 100; ++flow) stage.send(11'000, {0, 1, 60, 0, 0, flow});
  stage.run(100'000);
  CHECK(stage.lost.size() == lost);
  CHECK(stage.came.size() == 200 - lost);
}

TEST_CASE("the same seed gives the same times and losses") {
  const auto run = [](uint64_t seed) {
    LinkSettings lossy = kByteNs;
    lossy.loss_ppm = 10'000;
    NetworkSettings settings;
    settings.seed = seed;
    settings.switches.paths.by = PathBy::packet;
    settings.switches.ecn = EcnSettings{.kmin_bytes = 0, .kmax_bytes = 20'000};
    Stage stage(leaf_spine(2, 3, 3, {lossy, lossy}), settings);
    for (uint32_t i = 0; i < 600; ++i)
      stage.send(i * 100, {i % 3, 3 + i / 3 % 3, 200 + i, 0, kEct0, 0, 'x'});
    stage.run();
    std::string all;
    for (const Came& one : stage.came)
      all += std::to_string(one.host) + " " + std::to_string(one.at) + " " +
             std::to_string(one.ecn()) + "\n";
    return all;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

}  // namespace rocemu::network
