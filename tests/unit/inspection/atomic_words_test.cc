#include "emulator/inspection/atomic_words.h"

#include <catch2/catch.hpp>

using namespace rocemu::inspection;

TEST_CASE("A word that was changed between two atomics of which the second was under way") {
  int space;
  AtomicWords words;
  CHECK_FALSE(words.on_atomic(&space, 0x100, 0, 5, 1, 10));
  SECTION("by something else than the NIC") {
    CHECK(words.on_atomic(&space, 0x100, 77, 82, 9, 11) == 5);
  }
  SECTION("not changed") { CHECK_FALSE(words.on_atomic(&space, 0x100, 5, 10, 9, 11)); }
  SECTION("but the second was posted later") {
    CHECK_FALSE(words.on_atomic(&space, 0x100, 77, 82, 10, 11));
  }
  SECTION("by the NIC, with few bytes or with many") {
    words.on_write(&space, 0x0f9, GENERATE(8u, 4096u));
    CHECK_FALSE(words.on_atomic(&space, 0x100, 77, 82, 9, 11));
  }
  SECTION("nor by a write that ends with the address space") {
    words.on_write(&space, ~uint64_t{0} - 3, 3);
    CHECK(words.on_atomic(&space, 0x100, 77, 82, 9, 11) == 5);
  }
  SECTION("it is another program's word") {
    int other;
    CHECK_FALSE(words.on_atomic(&other, 0x100, 77, 82, 9, 11));
  }
}
