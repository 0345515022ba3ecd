#include "base/net/path_telemetry.h"

#include <catch2/catch.hpp>
#include <vector>

namespace rocemu {
namespace {

std::vector<std::byte> record_of(unsigned hops) {
  std::vector<std::byte> record(telemetry_bytes(hops), std::byte{0xee});
  write_path_telemetry(record.data(), hops);
  return record;
}

}  // namespace

TEST_CASE("path telemetry: an empty record, as it stands in a packet") {
  const auto record = record_of(1);
  const std::vector<std::byte> head(record.begin(), record.begin() + 12);
  CHECK(head == std::vector<std::byte>{std::byte{0}, std::byte{0}, std::byte{127}, std::byte{26},
                                       std::byte{0x52}, std::byte{0x4f}, std::byte{0}, std::byte{0},
                                       std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}});
  CHECK(telemetry_hop(record.data(), 0) == TelemetryHop{});
  for (unsigned hops = 0; hops <= kMaxTelemetryHops; ++hops) {
    const auto empty = record_of(hops);
    CHECK(is_path_telemetry(empty));
    CHECK(telemetry_room(empty.data()) == hops);
    CHECK(telemetry_passed(empty.data()) == 0);
    CHECK_FALSE(telemetry_returns(empty.data()));
  }
}

TEST_CASE("path telemetry: each switch fills in one hop; one too many only counts") {
  auto record = record_of(2);
  stamp_telemetry(record.data(), 3, {1, 2, 3, 4});
  stamp_telemetry(record.data(), 8, {5, 6, 7, 8});
  const uint32_t path = telemetry_path(record.data());
  CHECK(telemetry_hop(record.data(), 0) == TelemetryHop{1, 2, 3, 4});
  CHECK(telemetry_hop(record.data(), 1) == TelemetryHop{5, 6, 7, 8});
  const auto full = record;
  stamp_telemetry(record.data(), 9, {9, 9, 9, 9});
  CHECK(telemetry_passed(record.data()) == 3);
  CHECK(telemetry_path(record.data()) != path);
  CHECK(std::equal(full.begin() + 12, full.end(), record.begin() + 12));
  for (int i = 0; i < 300; ++i) stamp_telemetry(record.data(), 1, {});
  CHECK(telemetry_passed(record.data()) == kMaxTelemetryPassed);
}

TEST_CASE("path telemetry: the path tells ports and their order apart") {
  const auto path = [](std::initializer_list<uint32_t> ports) {
    auto record = record_of(0);
    for (const uint32_t port : ports) stamp_telemetry(record.data(), port, {});
    return telemetry_path(record.data());
  };
  CHECK(path({1, 2}) == path({1, 2}));
  CHECK(path({1, 2}) != path({2, 1}));
  CHECK(path({1, 2}) != path({1, 3}));
  CHECK(path({0}) != path({}));
}

TEST_CASE("path telemetry: on the way back nothing is added") {
  auto record = record_of(2);
  stamp_telemetry(record.data(), 3, {1, 2, 3, 4});
  return_telemetry(record.data());
  const auto sent_back = record;
  stamp_telemetry(record.data(), 4, {5, 6, 7, 8});
  CHECK(record == sent_back);
  CHECK(is_path_telemetry(record));
  CHECK(telemetry_returns(record.data()));
}

TEST_CASE("path telemetry: whatever is no whole record is none") {
  const auto good = record_of(3);
  CHECK_FALSE(is_path_telemetry({}));
  for (size_t bytes = 1; bytes < good.size(); ++bytes)
    CHECK_FALSE(is_path_telemetry(std::span(good).first(bytes)));
  auto longer = good;
  longer.resize(good.size() + kTelemetryHopBytes);
  CHECK_FALSE(is_path_telemetry(longer));
  for (const size_t at : {0, 1, 2, 3, 4, 5}) {
    auto bad = good;
    bad[at] ^= std::byte{1};
    CHECK_FALSE(is_path_telemetry(bad));
  }
  auto unknown_direction = good;
  unknown_direction[6] = std::byte{2};
  CHECK_FALSE(is_path_telemetry(unknown_direction));
  std::vector<std::byte> beyond(telemetry_bytes(kMaxTelemetryHops + 1));
  write_path_telemetry(beyond.data(), kMaxTelemetryHops + 1);
  CHECK_FALSE(is_path_telemetry(beyond));
}

}  // namespace rocemu
