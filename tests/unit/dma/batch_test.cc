// Scatter and gather against a reference, and how many system calls they take.
#include "emulator/dma/batch.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "tests/unit/dma/child_program.h"

namespace rocemu::dma {
namespace {

using test::ChildProgram;
using test::kPageBytes;
using test::random_bytes;

constexpr size_t kProbeBytes = 8;

struct Range {
  size_t offset;
  uint32_t length_bytes;
};

// Ranges that often begin where the last one ended.
Range next_range(std::mt19937& random, const Range& last, size_t limit) {
  const auto length = static_cast<uint32_t>(random() % 5000);
  size_t offset = last.offset + last.length_bytes;
  if (random() % 2 == 0 || offset + length > limit) {
    offset = kProbeBytes + random() % (limit - kProbeBytes - length);
  }
  return {offset, length};
}

TEST_CASE("random gathers from two programs equal the reference") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  std::mt19937 random(7);
  std::array<ChildProgram, 2> children{ChildProgram(64), ChildProgram(64)};
  std::array<std::unique_ptr<AddressSpace>, 2> spaces;
  for (size_t i = 0; i < 2; ++i) {
    spaces[i] = children[i].address_space(method);
    REQUIRE(spaces[i]);
    const auto bytes = random_bytes(random, children[i].memory().size());
    std::memcpy(children[i].memory().data(), bytes.data(), bytes.size());
  }

  Batch batch(Direction::from_program);
  std::vector<uint32_t> failed;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> arena(300 * 5000);
    std::vector<std::byte> expected(arena.size());
    size_t used = 0;
    std::array<Range, 2> last{};
    for (uint32_t tag = 0; !batch.full() && tag < 300; ++tag) {
      const size_t who = random() % 2;
      last[who] = next_range(random, last[who], children[who].memory().size());
      const auto [offset, length] = last[who];
      if (random() % 3 == 0) used += 16;
      batch.add(*spaces[who], children[who].base() + offset, arena.data() + used, length, tag);
      std::memcpy(expected.data() + used, children[who].memory().data() + offset, length);
      used += length;
    }
    batch.flush(failed);
    CHECK(batch.empty());
    REQUIRE(failed.empty());
    REQUIRE(arena == expected);
  }
}

TEST_CASE("random scatters that overlap happen in order") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  const bool stores_seen_in_order = GENERATE(true, false);
  std::mt19937 random(11);
  ChildProgram child(16);
  const auto space = child.address_space(method);
  REQUIRE(space);
  const std::vector<std::byte> source = random_bytes(random, 1 << 20);
  std::vector<std::byte> expected(child.memory().begin(), child.memory().end());

  Batch batch(Direction::to_program, 100, stores_seen_in_order);
  std::vector<uint32_t> failed;
  for (int round = 0; round < 50; ++round) {
    Range last{};
    while (!batch.full()) {
      last = next_range(random, last, expected.size());
      const std::byte* from = source.data() + random() % (source.size() - 5000);
      batch.add(*space, child.base() + last.offset, from, last.length_bytes, 0);
      std::memcpy(expected.data() + last.offset, from, last.length_bytes);
    }
    batch.flush(failed);
    REQUIRE(failed.empty());
    REQUIRE(std::memcmp(expected.data(), child.memory().data(), expected.size()) == 0);
  }
}

uint64_t calls_for(AddressSpace& space, Batch& batch) {
  const uint64_t before = space.system_calls();
  std::vector<uint32_t> failed;
  batch.flush(failed);
  CHECK(failed.empty());
  return space.system_calls() - before;
}

TEST_CASE("ranges that follow each other within a page are read as one") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  std::mt19937 random(13);
  ChildProgram child(4);
  const auto space = child.address_space(method);
  REQUIRE(space);
  const auto bytes = random_bytes(random, child.memory().size());
  std::memcpy(child.memory().data(), bytes.data(), bytes.size());

  constexpr size_t kStride = 64;
  constexpr uint32_t kLength = 8;
  std::vector<std::byte> arena(64 * kLength);
  Batch batch(Direction::from_program);
  for (uint32_t i = 0; i < 64; ++i) {
    batch.add(*space, child.base() + i * kStride, arena.data() + i * kLength, kLength, i);
  }
  CHECK(calls_for(*space, batch) == 1);
  for (uint32_t i = 0; i < 64; ++i) {
    REQUIRE(std::memcmp(arena.data() + i * kLength, bytes.data() + i * kStride, kLength) == 0);
  }
}

TEST_CASE("what lies between two ranges of different pages is not read") {
  ChildProgram child(4);
  const auto space = child.address_space(Method::mem_fd);
  REQUIRE(space);
  std::vector<std::byte> arena(64);
  Batch batch(Direction::from_program);
  batch.add(*space, child.base() + kPageBytes - 16, arena.data(), 8, 0);
  batch.add(*space, child.base() + kPageBytes + 16, arena.data() + 8, 8, 1);
  CHECK(calls_for(*space, batch) == 2);
}

TEST_CASE("what lies between two ranges is not written") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  ChildProgram child(1);
  const auto space = child.address_space(method);
  REQUIRE(space);
  std::memset(child.memory().data() + 64, 0x11, 256);
  const std::vector<std::byte> source(16, std::byte{0x22});
  Batch batch(Direction::to_program);
  batch.add(*space, child.base() + 64, source.data(), 8, 0);
  batch.add(*space, child.base() + 128, source.data() + 8, 8, 1);
  std::vector<uint32_t> failed;
  batch.flush(failed);
  REQUIRE(failed.empty());
  for (size_t i = 72; i < 128; ++i) REQUIRE(child.memory()[i] == std::byte{0x11});
  CHECK(child.memory()[64] == std::byte{0x22});
  CHECK(child.memory()[135] == std::byte{0x22});
}

TEST_CASE("neighbouring remote ranges take one call") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  ChildProgram child(32);
  const auto space = child.address_space(method);
  REQUIRE(space);
  std::vector<std::byte> arena(64 * kPageBytes);
  Batch batch(Direction::from_program);
  for (uint32_t i = 0; i < 32; ++i) {
    batch.add(*space, child.base() + i * kPageBytes, arena.data() + 2 * i * kPageBytes, kPageBytes,
              i);
  }
  CHECK(calls_for(*space, batch) == 1);
}

TEST_CASE("scattered remote ranges take one call, or one each through the descriptor") {
  ChildProgram child(32);
  std::vector<std::byte> arena(32 * 64);
  for (const auto& [method, calls] :
       {std::pair{Method::process_vm, 1U}, std::pair{Method::mem_fd, 32U}}) {
    const auto space = child.address_space(method);
    REQUIRE(space);
    Batch batch(Direction::from_program);
    for (uint32_t i = 0; i < 32; ++i) {
      batch.add(*space, child.base() + i * kPageBytes, arena.data() + i * 64, 64, i);
    }
    CHECK(calls_for(*space, batch) == calls);
  }
}

TEST_CASE("a call takes 1024 ranges a side") {
  ChildProgram child(32);
  std::vector<std::byte> arena(3000 * 16);
  // {remote stride, local stride, method, calls}; a stride of 16 makes gaps, one of 8 none.
  struct Case {
    size_t remote;
    size_t local;
    Method method;
    uint64_t calls;
  };
  const auto& [remote, local, method, calls] = GENERATE(values<Case>({
      {16, 16, Method::process_vm, 3},
      {8, 16, Method::process_vm, 3},
      {16, 8, Method::process_vm, 3},
      {8, 8, Method::process_vm, 1},
      {8, 16, Method::mem_fd, 3},
      {8, 8, Method::mem_fd, 1},
  }));
  const auto space = child.address_space(method);
  REQUIRE(space);
  Batch batch(Direction::to_program, 3000, true);
  for (uint32_t i = 0; !batch.full(); ++i) {
    batch.add(*space, child.base() + i * remote, arena.data() + i * local, 8, i);
  }
  CHECK(calls_for(*space, batch) == calls);
}

// 700 messages of 8 bytes are a range each, the longer ones two.
TEST_CASE("where stores are seen in any order, ends of messages are ranges of their own") {
  ChildProgram child(32);
  const std::vector<std::byte> source(700 * 64, std::byte{5});
  struct Case {
    uint32_t length_bytes;
    Method method;
    uint64_t calls;
  };
  const auto& [length, method, calls] = GENERATE(values<Case>({
      {8, Method::process_vm, 1},
      {9, Method::process_vm, 2},
      {64, Method::process_vm, 2},
      {8, Method::mem_fd, 1},
      {64, Method::mem_fd, 2},
  }));
  const auto space = child.address_space(method);
  REQUIRE(space);
  Batch batch(Direction::to_program, 700, false);
  for (uint32_t i = 0; !batch.full(); ++i) {
    batch.add(*space, child.base() + kProbeBytes + i * length, source.data() + i * length, length,
              i);
  }
  CHECK(calls_for(*space, batch) == calls);
  CHECK(std::memcmp(child.memory().data() + kProbeBytes, source.data(), 700 * length) == 0);
  CHECK(child.memory()[kProbeBytes + 700 * length] == std::byte{0});
}

TEST_CASE("an empty batch and transfers of length zero make no call") {
  ChildProgram child(1);
  const auto space = child.address_space(Method::process_vm);
  REQUIRE(space);
  Batch batch(Direction::to_program, 1);
  CHECK(calls_for(*space, batch) == 0);
  std::byte byte{};
  batch.add(*space, 0, &byte, 0, 1);
  CHECK(batch.empty());
  CHECK_FALSE(batch.full());
  CHECK(calls_for(*space, batch) == 0);
}

}  // namespace
}  // namespace rocemu::dma
