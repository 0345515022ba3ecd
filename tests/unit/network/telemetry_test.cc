// Switches fill in path telemetry.
#include "base/net/path_telemetry.h"
#include "tests/unit/network/network_stage.h"

namespace rocemu::network {
namespace {

constexpr unsigned kRoom = 3;

// A packet of `length_bytes` of which the last are a record.
std::vector<std::byte> frame_with_record(const Sent& sent, unsigned room = kRoom) {
  std::vector<std::byte> bytes = frame_of(sent);
  const size_t record_bytes = telemetry_bytes(room);
  store_be16(&bytes[38], static_cast<uint32_t>(sent.length_bytes - 34 - record_bytes));
  write_path_telemetry(bytes.data() + bytes.size() - record_bytes, room);
  return bytes;
}

const std::byte* record_in(const Came& came, unsigned room = kRoom) {
  const auto record = std::span(came.bytes).last(telemetry_bytes(room));
  REQUIRE(is_path_telemetry(record));
  return record.data();
}

}  // namespace

TEST_CASE("telemetry: each switch says when, how much it has sent, what waits, and how fast") {
  NetworkSettings settings;
  settings.overhead_bytes = 24;
  Stage stage(dumbbell(2, 2, {kByteNs, kByteNs}), settings);
  // Hosts 0 and 1 send to 2: at the first switch the second packet waits for the first.
  for (uint32_t from : {0u, 1u}) stage.send_bytes(0, from, frame_with_record({from, 2, 1000}));
  stage.run();
  REQUIRE(stage.came.size() == 2);
  const std::byte* const first = record_in(stage.came[0]);
  CHECK(telemetry_passed(first) == 2);
  CHECK(telemetry_hop(first, 0) == TelemetryHop{1124, 1024, 0, 8'000'000});
  CHECK(telemetry_hop(first, 1) == TelemetryHop{1124 + 1124, 1024, 0, 8'000'000});
  CHECK(telemetry_hop(first, 2) == TelemetryHop{});
  const std::byte* const second = record_in(stage.came[1]);
  CHECK(telemetry_hop(second, 0) == TelemetryHop{1124 + 1024, 2048, 0, 8'000'000});
  CHECK(telemetry_path(second) == telemetry_path(first));
  CHECK(stage.came[1].header_is_right());
}

TEST_CASE("telemetry: the queue is all that waits at the port, whatever its priority") {
  NetworkSettings settings;
  settings.switches.scheduling.strict = 0x80;
  Stage stage(star(4, kByteNs), settings);
  stage.send_bytes(0, 0, frame_with_record({0, 3, 1000, 56}));
  stage.send(0, {1, 3, 700});
  stage.send(0, {2, 3, 1000});
  stage.run();
  REQUIRE(stage.came.size() == 3);
  // The packet of 700 bytes is there first and leaves; the record's own goes before the third.
  CHECK(telemetry_hop(record_in(stage.came[1]), 0).queue_bytes == 1000);
}

TEST_CASE("telemetry: paths are told apart") {
  Stage stage(dumbbell(1, 2, {kByteNs, kByteNs}), {});
  for (uint32_t to : {1u, 2u}) stage.send_bytes(0, 0, frame_with_record({0, to, 1000}));
  stage.run();
  REQUIRE(stage.came.size() == 2);
  CHECK(telemetry_path(record_in(stage.came[0])) != telemetry_path(record_in(stage.came[1])));
}

TEST_CASE("telemetry: none on the way back, none when it is off, none in what is no record") {
  const auto unchanged = [](const std::vector<std::byte>& frame, const NetworkSettings& settings) {
    Stage stage(star(2, kByteNs), settings);
    stage.send_bytes(0, 0, frame);
    stage.run();
    REQUIRE(stage.came.size() == 1);
    CHECK(stage.came[0].bytes == frame);
  };
  std::vector<std::byte> frame = frame_with_record({0, 1, 1000});
  NetworkSettings off;
  off.switches.telemetry = false;
  unchanged(frame, off);
  std::byte* const record = frame.data() + frame.size() - telemetry_bytes(kRoom);
  return_telemetry(record);
  unchanged(frame, {});
  store_u8(record + 6, 0);
  store_u8(record + 3, 0);
  unchanged(frame, {});
  // Lengths that lead out of the frame, and the other way.
  for (const uint32_t udp_bytes : {0u, 7u, 65535u}) {
    std::vector<std::byte> hostile = frame_with_record({0, 1, 1000});
    store_be16(&hostile[38], udp_bytes);
    unchanged(hostile, {});
    store_be16(&hostile[16], 65535);
    store_be16(&hostile[24], 0);
    store_be16(&hostile[24], internet_checksum(ipv4_header_sum(&hostile[14])));
    unchanged(hostile, {});
  }
}

TEST_CASE("telemetry: a trimmed packet has none any more") {
  NetworkSettings settings;
  settings.switches.queue_limit_bytes = 1000;
  settings.switches.trim = TrimSettings{.keep_bytes = 100};
  Stage stage(star(4, kByteNs), settings);
  for (uint32_t from : {0u, 1u, 2u}) stage.send_bytes(0, from, frame_with_record({from, 3, 1000}));
  stage.run();
  REQUIRE(stage.came.size() == 3);
  CHECK(stage.came[2].bytes.size() == 100);
  CHECK(load_be16(&stage.came[2].bytes[38]) == 66);
}

}  // namespace rocemu::network
