// Memory of this process: the same rules, without system calls.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "emulator/dma/atomics.h"
#include "emulator/dma/batch.h"

namespace rocemu::dma {
namespace {

using Tags = std::vector<uint32_t>;

TEST_CASE("local memory moves within its bounds") {
  const uint64_t base = GENERATE(uint64_t{0}, uint64_t{0x1000}, UINT64_MAX - 64);
  std::vector<std::byte> memory(64);
  const auto space = AddressSpace::local(memory, base);
  CHECK(space->method() == Method::local);
  CHECK(to_string(space->method()) == "local");

  const std::vector<std::byte> source(65, std::byte{3});
  Batch batch(Direction::to_program);
  batch.add(*space, base + 63, source.data(), 1, 0);
  batch.add(*space, base + 64, source.data(), 1, 1);
  batch.add(*space, base - 1, source.data(), 2, 2);
  batch.add(*space, base, source.data(), 65, 3);
  batch.add(*space, base + 60, source.data(), 8, 4);
  batch.add(*space, base + 8, source.data(), 8, 5);
  batch.add(*space, base + 16, source.data() + 20, 8, 6);
  Tags failed;
  batch.flush(failed);
  CHECK(failed == Tags{1, 2, 3, 4});
  CHECK(memory[63] == std::byte{3});
  CHECK(memory[8] == std::byte{3});
  CHECK(memory[23] == std::byte{3});
  CHECK(space->system_calls() == 0);

  std::vector<std::byte> copy(64);
  CHECK(space->move_range(Direction::from_program, base, copy.data(), 64));
  CHECK(copy == memory);
}

TEST_CASE("local memory has atomics") {
  std::vector<std::byte> memory(16);
  const auto space = AddressSpace::local(memory, 0x1000);
  CHECK(fetch_add(*space, 0x1008, 258) == 0U);
  CHECK(fetch_add(*space, 0x1008, 1) == 258U);
  CHECK_FALSE(fetch_add(*space, 0x1010, 1));
}

TEST_CASE("no memory at all reads as zeroes and takes what is written") {
  const auto space = AddressSpace::none();
  std::vector<std::byte> bytes(64, std::byte{3});
  Tags failed;
  Batch writes(Direction::to_program);
  writes.add(*space, 0, bytes.data(), 64, 0);
  writes.add(*space, UINT64_MAX - 64, bytes.data(), 64, 1);
  writes.flush(failed);
  Batch reads(Direction::from_program);
  reads.add(*space, 0x1234, bytes.data(), 32, 2);
  reads.add(*space, 0x9999, bytes.data() + 32, 31, 3);
  reads.flush(failed);
  CHECK(failed.empty());
  CHECK(bytes.back() == std::byte{3});
  bytes.pop_back();
  CHECK(bytes == std::vector<std::byte>(63));
}

TEST_CASE("local memory that would wrap round is refused") {
  std::vector<std::byte> memory(16);
  CHECK_THROWS_AS(AddressSpace::local(memory, UINT64_MAX - 15), std::invalid_argument);
  CHECK(AddressSpace::local(memory, UINT64_MAX - 16));
  CHECK(AddressSpace::local({}, 0)->method() == Method::local);
}

}  // namespace
}  // namespace rocemu::dma
