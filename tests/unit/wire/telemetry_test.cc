// Path telemetry behind the datagram (base/net/path_telemetry.h).
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/byte_order.h"
#include "base/net/path_telemetry.h"
#include "emulator/wire/icrc.h"
#include "tests/unit/data.h"
#include "tests/unit/wire/pcap_file.h"
#include "tests/unit/wire/sample_frames.h"

namespace rocemu::wire {
namespace {

using test::kNetworks;
using test::Network;
using test::sample;

test::Frame build(Network network, std::span<const std::byte> surplus) {
  const test::FrameValues v = sample(network, Operation::send_only);
  return build_frame(v.ethernet, v.ip, v.udp, v.bth, v.ext, v.payload, surplus);
}

std::vector<std::byte> record_of(unsigned hops) {
  std::vector<std::byte> record(telemetry_bytes(hops));
  write_path_telemetry(record.data(), hops);
  return record;
}

}  // namespace

TEST_CASE("telemetry: a packet has it behind its datagram, and means the same otherwise") {
  for (const Network network : kNetworks) {
    const auto record = record_of(5);
    const test::Frame frame = build(network, record);
    const test::Frame plain = build(network, {});
    CHECK(frame.size() == plain.size() + record.size());
    Packet packet;
    REQUIRE(parse_frame(frame, packet) == ParseError::none);
    CHECK(std::ranges::equal(packet.telemetry, record));
    CHECK(packet.payload.size() == 100);
    CHECK(packet.l3.size() == plain.size() - test::l3_offset_bytes(network));
    CHECK(icrc_matches(packet.l3));
    REQUIRE(parse_frame(plain, packet) == ParseError::none);
    CHECK(packet.telemetry.empty());
  }
}

TEST_CASE("telemetry: UDP's length ends before it, IP's does not") {
  const test::Frame frame = build(Network::ipv4, record_of(1));
  const test::Frame plain = build(Network::ipv4, {});
  CHECK(load_be16(&frame[16]) == load_be16(&plain[16]) + telemetry_bytes(1));
  CHECK(load_be16(&frame[38]) == load_be16(&plain[38]));
  const test::Frame frame6 = build(Network::ipv6, record_of(1));
  const test::Frame plain6 = build(Network::ipv6, {});
  CHECK(load_be16(&frame6[18]) == load_be16(&plain6[18]) + telemetry_bytes(1));
  CHECK(load_be16(&frame6[58]) == load_be16(&plain6[58]));
}

TEST_CASE("telemetry: what a switch writes there does not touch the ICRC") {
  test::Frame frame = build(Network::ipv6, record_of(2));
  stamp_telemetry(frame.data() + frame.size() - telemetry_bytes(2), 7, {1, 2, 3, 4});
  Packet packet;
  REQUIRE(parse_frame(frame, packet) == ParseError::none);
  CHECK(icrc_matches(packet.l3));
  CHECK(telemetry_hop(packet.telemetry.data(), 0) == TelemetryHop{1, 2, 3, 4});
}

TEST_CASE("telemetry: anything else behind a datagram is refused") {
  for (const Network network : kNetworks) {
    Packet packet;
    for (const size_t bytes : {1, 4, 12, 28, 200}) {
      const std::vector<std::byte> zeros(bytes);
      CHECK(parse_frame(build(network, zeros), packet) == ParseError::bad_udp_length);
    }
    auto wrong = record_of(2);
    wrong[3] = std::byte{26};
    CHECK(parse_frame(build(network, wrong), packet) == ParseError::bad_udp_length);
  }
}

// That file was put together from the standards alone, and tests/e2e holds it against tshark.
TEST_CASE("telemetry: packets that were not built here") {
  const auto frames = test::read_pcap(rocemu::test::data_folder() / "path-telemetry.pcap");
  REQUIRE(frames.size() == 4);
  const unsigned room[] = {5, 5, 5, 0};
  const unsigned passed[] = {2, 0, 3, 7};
  for (size_t i = 0; i < frames.size(); ++i) {
    Packet packet;
    REQUIRE(parse_frame(frames[i], packet) == ParseError::none);
    CHECK(icrc_matches(packet.l3));
    CHECK(packet.payload.size() == (i < 2 ? 64 : 0));
    CHECK(telemetry_room(packet.telemetry.data()) == room[i]);
    CHECK(telemetry_passed(packet.telemetry.data()) == passed[i]);
    CHECK(telemetry_returns(packet.telemetry.data()) == (i >= 2));
  }
}

TEST_CASE("telemetry: a packet parsed before leaves none behind") {
  Packet packet;
  REQUIRE(parse_frame(build(Network::ipv4, record_of(2)), packet) == ParseError::none);
  REQUIRE(parse_frame(build(Network::ipv4, {}), packet) == ParseError::none);
  CHECK(packet.telemetry.empty());
}

}  // namespace rocemu::wire
