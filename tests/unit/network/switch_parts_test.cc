// The rules of a port and a switch, each by itself.
#include <map>
#include <string>

#include "network/switching/line.h"
#include "network/switching/path_chooser.h"
#include "network/switching/priority_scheduler.h"
#include "tests/unit/network/network_stage.h"

namespace rocemu::network {

TEST_CASE("a line takes exactly the time of its bytes, however short the frames") {
  // 64 bytes at 400 Gbit/s are 1.28 ns.
  Line line(400'000'000'000);
  TimeNs now = 7;
  for (int i = 0; i < 100; ++i) now = line.occupy(now, 64);
  CHECK(now == 7 + 128);
  // After a pause nothing is kept.
  CHECK(line.occupy(1000, 64) == 1001);
  CHECK(line.occupy(1001, 64) == 1002);
  CHECK(line.occupy(1002, 64) == 1003);
  CHECK(line.occupy(1003, 64) == 1005);
}

TEST_CASE("strict priorities go first, the highest foremost") {
  PriorityScheduler scheduler;
  SchedulingSettings settings;
  settings.strict = 0b1001'0000;
  const auto length = [](unsigned) { return 1000u; };
  CHECK(scheduler.pick(settings, 0b1111'1111, length) == 7);
  CHECK(scheduler.pick(settings, 0b0111'1111, length) == 4);
  CHECK(scheduler.pick(settings, 0b0110'0000, length) == 5);
}

TEST_CASE("weights share the bytes, whatever the lengths of frames") {
  PriorityScheduler scheduler;
  SchedulingSettings settings;
  settings.weights = {1, 2, 5, 1, 1, 1, 1, 1};
  const std::array<uint32_t, 8> lengths = {100, 4000, 1500};
  std::array<uint64_t, 8> bytes{};
  for (int i = 0; i < 100'000; ++i) {
    const unsigned picked =
        scheduler.pick(settings, 0b111, [&](unsigned priority) { return lengths[priority]; });
    REQUIRE(picked < 3);
    bytes[picked] += lengths[picked];
  }
  const double unit = static_cast<double>(bytes[0]);
  CHECK(static_cast<double>(bytes[1]) / unit == Approx(2).epsilon(0.01));
  CHECK(static_cast<double>(bytes[2]) / unit == Approx(5).epsilon(0.01));
}

TEST_CASE("weights, frame by frame: a quantum for each round, and what is left is kept") {
  PriorityScheduler scheduler;
  SchedulingSettings settings;
  settings.weights = {2, 1, 1, 1, 1, 1, 1, 1};
  settings.quantum_bytes = 1000;
  std::string order;
  for (int i = 0; i < 9; ++i)
    order +=
        static_cast<char>('0' + scheduler.pick(settings, 0b11, [](unsigned) { return 1500u; }));
  // Round 1: of 2000 one, of 1000 none; round 2: of 2500 one, of 2000 one; round 3: of 3000 two,
  // of 1500 one, and nothing is left.
  CHECK(order == "001001001");
}

TEST_CASE("paths by flow: one path each, evenly over all, and others at another switch") {
  const std::vector<uint32_t> ports = {10, 20, 30, 40};
  PathChooser first({PathBy::flow}, 1);
  PathChooser second({PathBy::flow}, 2);
  std::map<uint32_t, int> counts;
  std::map<uint32_t, int> counts_behind_10;
  for (uint64_t flow = 0; flow < 4000; ++flow) {
    const uint64_t hash = mix(flow);
    const uint32_t port = first.choose(ports, hash, 0);
    CHECK(first.choose(ports, hash, 1'000'000'000) == port);
    ++counts[port];
    if (port == 10) ++counts_behind_10[second.choose(ports, hash, 0)];
  }
  REQUIRE(counts.size() == 4);
  for (const auto& [port, count] : counts) CHECK(std::abs(count - 1000) < 120);
  REQUIRE(counts_behind_10.size() == 4);
  for (const auto& [port, count] : counts_behind_10) CHECK(std::abs(count - 250) < 70);
}

TEST_CASE("paths by flowlet: changed after a gap alone") {
  const std::vector<uint32_t> ports = {10, 20, 30, 40};
  PathChooser chooser({PathBy::flowlet, 1000}, 1);
  std::map<uint32_t, int> counts;
  TimeNs now = 0;
  for (int flowlet = 0; flowlet < 400; ++flowlet) {
    const uint32_t port = chooser.choose(ports, 77, now);
    ++counts[port];
    for (int i = 0; i < 5; ++i) CHECK(chooser.choose(ports, 77, now += 1000) == port);
    now += 1001;
  }
  REQUIRE(counts.size() == 4);
  for (const auto& [port, count] : counts) CHECK(std::abs(count - 100) < 40);
  // Not by a port that has gone.
  const uint32_t port = chooser.choose(ports, 77, now);
  std::vector<uint32_t> fewer = ports;
  std::erase(fewer, port);
  CHECK(chooser.choose(fewer, 77, now) != port);
}

TEST_CASE("paths by packet: evenly") {
  const std::vector<uint32_t> ports = {10, 20};
  PathChooser chooser({PathBy::packet}, 1);
  int tens = 0;
  for (int i = 0; i < 1000; ++i) tens += chooser.choose(ports, 77, 0) == 10;
  CHECK(std::abs(tens - 500) < 60);
}

TEST_CASE("headers: IPv4, IPv6, VLAN tags, and what tells flows apart") {
  const auto ipv4 = frame_of({1, 2, 100, 26, kEct0});
  const PacketHeaders headers = parse_headers(ipv4);
  CHECK(headers.ip_offset == 14);
  CHECK(headers.udp_offset == 34);
  CHECK(headers.dscp == 26);
  CHECK(headers.ecn_capable);
  CHECK(parse_headers(frame_of({1, 2, 100, 26, kEct0, 0xc001})).flow_hash != headers.flow_hash);
  CHECK(parse_headers(frame_of({2, 1, 100, 26, kEct0})).flow_hash != headers.flow_hash);
  CHECK(parse_headers(frame_of({1, 2, 300, 3, 0})).flow_hash == headers.flow_hash);

  std::vector<std::byte> tagged = ipv4;
  const std::byte tag[] = {std::byte{0x81}, std::byte{0}, std::byte{0x60}, std::byte{5}};
  tagged.insert(tagged.begin() + 12, std::begin(tag), std::end(tag));
  CHECK(parse_headers(tagged).pcp == 3);
  CHECK(parse_headers(tagged).ip_offset == 18);
  CHECK(parse_headers(tagged).flow_hash == headers.flow_hash);

  std::vector<std::byte> ipv6(100);
  store_be16(ipv6.data() + 12, 0x86dd);
  store_be32(ipv6.data() + 14, 0x60000000 | 26u << 22 | 1u << 20);
  store_u8(ipv6.data() + 20, 17);
  const PacketHeaders of_ipv6 = parse_headers(ipv6);
  CHECK(of_ipv6.ip_offset == 14);
  CHECK(of_ipv6.udp_offset == 54);
  CHECK(of_ipv6.dscp == 26);
  CHECK(of_ipv6.ecn_capable);
  CHECK(mark_congestion(ipv6.data() + 14));
  CHECK(load_be32(ipv6.data() + 14) == (0x60000000 | 26u << 22 | 3u << 20));
  CHECK_FALSE(mark_congestion(ipv6.data() + 14));
  cut_headers(ipv6.data(), 14, 54, 70, 45);
  CHECK(load_be32(ipv6.data() + 14) == (0x60000000 | 45u << 22 | 3u << 20));
  CHECK(load_be16(ipv6.data() + 18) == 70 - 54);
  CHECK(load_be16(ipv6.data() + 58) == 70 - 54);
}

TEST_CASE("headers: fragments of a packet are one flow without ports") {
  auto first = frame_of({1, 2, 100, 0, 0, 7});
  store_be16(first.data() + 20, 0x2000);
  auto second = frame_of({1, 2, 100, 0, 0, 8});
  store_be16(second.data() + 20, 0x0010);
  CHECK(parse_headers(first).flow_hash == parse_headers(second).flow_hash);
  CHECK(parse_headers(first).udp_offset == 0);
}

}  // namespace rocemu::network
