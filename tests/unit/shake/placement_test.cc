#include "emulator/shake/memory/placement.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/unit/shake/fakes.h"

namespace rocemu::shake {
namespace {

using test::FakeMemory;

constexpr uint64_t kBase = FakeMemory::kBase;

struct Placed {
  explicit Placed(uint64_t seed, std::function<void()> pause = {}) {
    auto inner = std::make_unique<FakeMemory>();
    memory = inner.get();
    placement = std::make_unique<Placement>(std::move(inner), test::dice(seed), std::move(pause));
  }
  void scatter(uint64_t address, std::span<const std::byte> from, uint32_t tag = 0) {
    placement->scatter({memory, address}, from.data(), static_cast<uint32_t>(from.size()), tag);
  }
  std::vector<uint32_t> flush() {
    std::vector<uint32_t> failed;
    placement->flush_scatters(failed);
    return failed;
  }

  FakeMemory* memory;
  std::unique_ptr<Placement> placement;
};

std::vector<std::byte> pattern(size_t length, unsigned first) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

}  // namespace

TEST_CASE("all data is in place when the flush returns, whatever the order") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Placed placed(seed);
    const auto first = pattern(1000, 1), second = pattern(37, 50), third = pattern(1, 200);
    placed.scatter(kBase, first);
    placed.scatter(kBase + 1000, second);
    placed.scatter(kBase + 5000, third);
    CHECK(placed.memory->moves.empty());
    CHECK(placed.flush().empty());
    CHECK(std::equal(first.begin(), first.end(), placed.memory->bytes.begin()));
    CHECK(std::equal(second.begin(), second.end(), placed.memory->bytes.begin() + 1000));
    CHECK(placed.memory->at(kBase + 5000) == third[0]);
    CHECK(placed.memory->waiting.empty());
  }
}

TEST_CASE("the last byte is placed first now and then, and the packets in any order") {
  unsigned last_byte_first = 0, second_packet_first = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Placed placed(seed);
    const auto packet = pattern(256, 0);
    placed.scatter(kBase, packet);
    placed.scatter(kBase + 256, packet);
    placed.flush();
    const FakeMemory::Move& first = placed.memory->moves.front();
    last_byte_first +=
        first.address + first.bytes.size() == kBase + 512 && first.bytes.size() < 512;
    second_packet_first += first.address >= kBase + 256;
  }
  CHECK(last_byte_first > 10);
  CHECK(second_packet_first > 50);
}

TEST_CASE("of two moves that overlap the later one counts") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Placed placed(seed);
    const auto first = pattern(100, 1), second = pattern(40, 101), third = pattern(10, 201);
    placed.scatter(kBase, first);
    placed.scatter(kBase + 30, second);
    placed.scatter(kBase + 200, third);
    placed.scatter(kBase + 65, third);
    placed.flush();
    std::vector<std::byte> expected = first;
    std::copy(second.begin(), second.end(), expected.begin() + 30);
    std::copy(third.begin(), third.end(), expected.begin() + 65);
    CHECK(std::equal(expected.begin(), expected.end(), placed.memory->bytes.begin()));
  }
}

TEST_CASE("eight aligned bytes that are moved alone are not cut") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Placed placed(seed);
    const auto word = pattern(8, 1);
    placed.scatter(kBase + 64, word);
    placed.flush();
    REQUIRE(placed.memory->moves.size() == 1);
  }
}

TEST_CASE("moves that fail are told once each, in their order") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Placed placed(seed);
    const auto bytes = pattern(300, 1);
    placed.scatter(FakeMemory::kBroken, bytes, 4);
    placed.scatter(kBase, bytes, 5);
    placed.scatter(FakeMemory::kBroken + 1000, bytes, 6);
    CHECK(placed.flush() == std::vector<uint32_t>{4, 6});
    CHECK(placed.flush().empty());
  }
}

TEST_CASE("an atomic finds all that came before it in place") {
  Placed placed(3);
  const auto bytes = pattern(300, 1);
  uint64_t original;
  placed.scatter(kBase, bytes, 1);
  placed.scatter(FakeMemory::kBroken, bytes, 2);
  placed.placement->fetch_add({placed.memory, kBase}, 1, original);
  CHECK(placed.memory->at(kBase + 299) == bytes[299]);
  CHECK(placed.memory->waiting_at_atomic == 0);
  CHECK(placed.flush() == std::vector<uint32_t>{2});
}

TEST_CASE("programs are given a moment with half of it") {
  unsigned pauses = 0, halves = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Placed* seen = nullptr;
    Placed placed(seed, [&] {
      ++pauses;
      const auto& bytes = seen->memory->bytes;
      const auto there = std::count(bytes.begin(), bytes.begin() + 4096, std::byte{1});
      halves += there > 0 && there < 4096;
    });
    seen = &placed;
    const std::vector<std::byte> data(4096, std::byte{1});
    placed.scatter(kBase, data);
    placed.flush();
  }
  CHECK(pauses > 5);
  CHECK(halves == pauses);
}

}  // namespace rocemu::shake
