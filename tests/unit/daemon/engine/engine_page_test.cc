#include "emulator/daemon/engine/engine_page.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>

namespace rocemu::daemon {

TEST_CASE("programs read in the engine page what the engine shows, and cannot write it") {
  EnginePage page;
  CHECK(::mmap(nullptr, sizeof(rocemu_engine_page), PROT_READ | PROT_WRITE, MAP_SHARED, page.fd(),
               0) == MAP_FAILED);
  void* const mapping =
      ::mmap(nullptr, sizeof(rocemu_engine_page), PROT_READ, MAP_SHARED, page.fd(), 0);
  REQUIRE(mapping != MAP_FAILED);
  const auto& seen = *static_cast<const volatile rocemu_engine_page*>(mapping);
  CHECK(seen.magic == ROCEMU_ABI_MAGIC);
  CHECK(seen.abi_version == ROCEMU_ABI_VERSION);
  CHECK(seen.sleeping == 0);

  page.show_sleeping();
  CHECK(page.shows_sleeping());
  CHECK(seen.sleeping == 1);
  page.show_awake();
  CHECK_FALSE(page.shows_sleeping());
  CHECK(seen.sleeping == 0);

  page.show_attention(true);
  CHECK_FALSE(page.shows_sleeping());
  CHECK(seen.sleeping == ROCEMU_ENGINE_WANTS_ATTENTION);
  page.show_sleeping();
  CHECK(page.shows_sleeping());
  CHECK(seen.sleeping == (ROCEMU_ENGINE_SLEEPS | ROCEMU_ENGINE_WANTS_ATTENTION));
  page.show_attention(false);
  CHECK(seen.sleeping == ROCEMU_ENGINE_SLEEPS);
  page.show_awake();
  CHECK(seen.sleeping == 0);

  page.show_cpu(7);
  CHECK(seen.core == 7);
  page.show_crowded(true);
  CHECK(seen.crowded == 1);
  page.show_crowded(false);
  CHECK(seen.crowded == 0);

  page.show_turn(false);
  CHECK(seen.turn_behind == 0);
  page.show_turn(true);
  const uint32_t turn = seen.turn_behind;
  CHECK(turn != 0);
  page.show_turn(true);
  CHECK(seen.turn_behind != 0);
  CHECK(seen.turn_behind != turn);
  page.show_turn(false);
  CHECK(seen.turn_behind == 0);
  ::munmap(mapping, sizeof(rocemu_engine_page));
}

}  // namespace rocemu::daemon
