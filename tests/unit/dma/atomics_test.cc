#include "emulator/dma/atomics.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/dma/child_program.h"

namespace rocemu::dma {
namespace {

using test::ChildProgram;
using test::kPageBytes;

TEST_CASE("atomics return the value before and change it") {
  const Method method = GENERATE(Method::process_vm, Method::mem_fd);
  ChildProgram child(1);
  const auto space = child.address_space(method);
  REQUIRE(space);
  const uint64_t address = child.base() + 64;
  const auto value = [&] {
    uint64_t now = 0;
    std::memcpy(&now, child.memory().data() + 64, sizeof now);
    return now;
  };

  CHECK(fetch_add(*space, address, 5) == 0U);
  CHECK(value() == 5);
  CHECK(compare_swap(*space, address, 4, 9) == 5U);
  CHECK(value() == 5);
  CHECK(compare_swap(*space, address, 5, UINT64_MAX) == 5U);
  CHECK(value() == UINT64_MAX);
  CHECK(fetch_add(*space, address, 2) == UINT64_MAX);
  CHECK(value() == 1);
}

TEST_CASE("atomics out of reach change nothing") {
  ChildProgram child(
      2, [](std::byte* memory) { mprotect(memory + kPageBytes, kPageBytes, PROT_READ); });
  const auto space = child.address_space(Method::process_vm);
  REQUIRE(space);
  CHECK_FALSE(fetch_add(*space, child.base() + 4, 1));
  CHECK_FALSE(fetch_add(*space, child.base() + kPageBytes, 1));
  CHECK_FALSE(compare_swap(*space, child.base() + kPageBytes, 0, 1));
  CHECK(compare_swap(*space, child.base() + kPageBytes, 1, 2) == 0U);
  CHECK_FALSE(fetch_add(*space, child.base() + 2 * kPageBytes, 1));
  CHECK_FALSE(fetch_add(*space, UINT64_MAX - 7, 1));
  child.kill();
  CHECK_FALSE(fetch_add(*space, child.base() + 64, 1));
  CHECK_FALSE(compare_swap(*space, child.base() + 64, 0, 1));
}

}  // namespace
}  // namespace rocemu::dma
