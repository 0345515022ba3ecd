// Transfers that cannot happen: which are reported, and that the others still do.
#include <sys/mman.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "emulator/dma/batch.h"
#include "tests/unit/dma/child_program.h"

namespace rocemu::dma {
namespace {

using test::ChildProgram;
using test::kPageBytes;
using Tags = std::vector<uint32_t>;

TEST_CASE("a page that is missing fails the transfers that touch it and no others") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  const Direction direction = GENERATE(Direction::from_program, Direction::to_program);
  constexpr uint32_t kHole = 3;
  ChildProgram child(8, [](std::byte* memory) { munmap(memory + kHole * kPageBytes, kPageBytes); });
  const auto space = child.address_space(method);
  REQUIRE(space);

  // Half a page each, all adjacent, so that they are merged into one range; the one before the hole
  // reaches into it.
  const auto kHalf = static_cast<uint32_t>(kPageBytes / 2);
  std::vector<std::byte> arena(16 * kPageBytes, std::byte{0xab});
  Batch batch(direction);
  batch.add(*space, child.base(), arena.data(), kHalf, 100);
  for (uint32_t i = 1; i < 2 * kHole - 1; ++i) {
    batch.add(*space, child.base() + i * kHalf, arena.data() + i * kHalf, kHalf, 100 + i);
  }
  const uint32_t across = 2 * kHole - 1;
  batch.add(*space, child.base() + across * kHalf, arena.data() + across * kHalf, kHalf + 1, 200);
  for (uint32_t i = 2 * kHole; i < 16; ++i) {
    batch.add(*space, child.base() + i * kHalf, arena.data() + (i + 1) * kHalf, kHalf, 300 + i);
  }
  Tags failed;
  batch.flush(failed);
  CHECK(failed == Tags{200, 306, 307});

  const auto beyond = child.memory().subspan((kHole + 1) * kPageBytes);
  const std::byte* moved = arena.data() + (2 * kHole + 3) * kHalf;
  CHECK(std::memcmp(beyond.data(), moved, beyond.size()) == 0);
  CHECK(std::memcmp(child.memory().data() + 8, arena.data() + 8, across * kHalf - 8) == 0);
  CHECK(beyond[0] == (direction == Direction::to_program ? std::byte{0xab} : std::byte{0}));
}

TEST_CASE("bad transfers of one program are told apart from good ones among them") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  ChildProgram child(4);
  ChildProgram other(4);
  const auto space = child.address_space(method);
  const auto other_space = other.address_space(method);
  REQUIRE((space && other_space));

  const uint64_t end = child.base() + child.memory().size();
  const std::array<uint64_t, 9> bad{0,
                                    end,
                                    end - 4,
                                    UINT64_MAX,
                                    1ULL << 63,
                                    UINT64_MAX - 7,
                                    UINT64_MAX - 8,
                                    (1ULL << 63) - 4,
                                    0xffffffff80000000};
  std::vector<std::byte> source(64, std::byte{0x5a});
  Batch batch(Direction::to_program);
  Tags expected;
  uint32_t tag = 0;
  for (const uint64_t address : bad) {
    batch.add(*space, child.base() + 64 * tag + 64, source.data(), 64, tag);
    ++tag;
    expected.push_back(tag);
    batch.add(*space, address, source.data(), 8, tag++);
    batch.add(*other_space, other.base() + 64 * tag, source.data(), 64, tag);
    ++tag;
  }
  Tags failed{77};
  batch.flush(failed);
  expected.insert(expected.begin(), 77);
  CHECK(failed == expected);
  for (uint32_t i = 0; i < tag; i += 3) {
    CHECK(child.memory()[64 * i + 64] == std::byte{0x5a});
    CHECK(child.memory()[64 * i + 127] == std::byte{0x5a});
    CHECK(other.memory()[64 * (i + 2)] == std::byte{0x5a});
  }
}

TEST_CASE("process_vm does not write to a read-only page") {
  ChildProgram child(
      2, [](std::byte* memory) { mprotect(memory + kPageBytes, kPageBytes, PROT_READ); });
  const auto space = child.address_space(Method::process_vm);
  REQUIRE(space);
  std::vector<std::byte> bytes(64, std::byte{1});
  Batch scatter(Direction::to_program);
  scatter.add(*space, child.base() + kPageBytes, bytes.data(), 64, 1);
  scatter.add(*space, child.base() + 64, bytes.data(), 64, 2);
  Tags failed;
  scatter.flush(failed);
  CHECK(failed == Tags{1});
  CHECK(child.memory()[kPageBytes] == std::byte{0});
  CHECK(child.memory()[64] == std::byte{1});

  Batch gather(Direction::from_program);
  gather.add(*space, child.base() + kPageBytes, bytes.data(), 64, 3);
  failed.clear();
  gather.flush(failed);
  CHECK(failed.empty());
  CHECK(bytes[63] == std::byte{0});
}

TEST_CASE("everything of a dead program fails, and nobody else's") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  const bool reaped = GENERATE(false, true);
  ChildProgram dead(1);
  ChildProgram alive(1);
  const auto dead_space = dead.address_space(method);
  const auto alive_space = alive.address_space(method);
  REQUIRE((dead_space && alive_space));
  dead.kill();
  if (reaped) dead.reap();

  std::array<std::byte, 16> bytes{};
  Batch batch(Direction::to_program);
  Tags failed;
  const uint64_t calls = dead_space->system_calls();
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 8; ++i) {
      batch.add(*dead_space, dead.base() + 100 * i, bytes.data(), 16, 2 * i);
      batch.add(*alive_space, alive.base() + 100 * i + 8, bytes.data(), 16, 2 * i + 1);
    }
    failed.clear();
    batch.flush(failed);
    CHECK(failed == Tags{0, 2, 4, 6, 8, 10, 12, 14});
  }
  CHECK(dead_space->system_calls() == calls + 1);
}

TEST_CASE("a program whose main thread has ended is reached through its descriptor") {
  ChildProgram child(4);
  const auto space = child.address_space({});
  REQUIRE(space);
  REQUIRE(space->method() == Method::process_vm);
  child.end_main_thread();

  const std::array<std::byte, 16> bytes{std::byte{7}};
  Batch batch(Direction::to_program);
  for (uint32_t i = 0; i < 8; ++i) {
    batch.add(*space, child.base() + 8 + 100 * i, bytes.data(), 16, i);
  }
  Tags failed;
  batch.flush(failed);
  CHECK(failed.empty());
  CHECK(space->method() == Method::mem_fd);
  for (size_t i = 0; i < 8; ++i) CHECK(child.memory()[8 + 100 * i] == std::byte{7});
}

}  // namespace
}  // namespace rocemu::dma
