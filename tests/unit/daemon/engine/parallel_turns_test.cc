#include "emulator/daemon/engine/parallel_turns.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/daemon/nic_fixture.h"
#include "tests/unit/time_units.h"

namespace rocemu::daemon {
namespace {

constexpr unsigned kThreads = 4;

// Two devices on a switch that have nothing to do themselves.
struct Turns {
  explicit Turns(ParallelMode mode) : turns(mode, kThreads, fabric) {
    for (uint32_t i = 0; i < 2; ++i)
      devices.push_back(std::make_unique<EngineDevice>(
          std::make_unique<device::Hca>(device::default_config(i), transport::TransportLimits{},
                                        gids),
          fabric.add_port({2, 0, 0, 0, 0, static_cast<uint8_t>(i)}, "port"), nic.pool(), true));
  }
  // As if a device flushed much of so many programs; returns how many threads moved it.
  size_t flush(unsigned programs) {
    std::mutex mutex;
    std::vector<unsigned> moved;
    std::set<std::thread::id> threads;
    turns.movers().run(programs, [&](unsigned program) {
      const std::lock_guard lock(mutex);
      moved.push_back(program);
      threads.insert(std::this_thread::get_id());
    });
    std::ranges::sort(moved);
    CHECK(std::ranges::adjacent_find(moved) == moved.end());
    CHECK(moved.size() == programs);
    return threads.size();
  }

  NicFixture nic;
  GidDirectory gids;
  dpdk_io::Switch fabric{nic.pool()};
  std::vector<std::unique_ptr<EngineDevice>> devices;
  ParallelTurns turns;
};

}  // namespace

TEST_CASE(
    "where programs share the threads their moves are divided, and devices have turns in order") {
  Turns nic(ParallelMode::programs);
  CHECK_FALSE(nic.turns.next_is_together(1000, nic.devices));
  CHECK(nic.flush(3) <= 3);
  CHECK(nic.turns.stats().most_threads == 3);
  CHECK(nic.flush(9) <= kThreads);
  CHECK(nic.flush(200) <= kThreads);  // more than there are bits in a word
  CHECK(nic.turns.stats().shared_moves == 3);
  CHECK(nic.turns.stats().parallel_turns == 0);
  CHECK(nic.turns.stats().most_threads == kThreads);
}

TEST_CASE("where devices have their turns at the same time their moves are not divided") {
  Turns nic(ParallelMode::always);
  CHECK(nic.turns.next_is_together(1000, nic.devices));
  CHECK(nic.flush(9) == 1);
  CHECK(nic.turns.stats().shared_moves == 0);
}

TEST_CASE("many programs of few devices are tried on more threads than there are devices") {
  Turns nic(ParallelMode::automatic);
  const unsigned programs = GENERATE(0u, 8u);
  for (TimeNs now = 1; now < 100 * kMs; now += 20 * kUs) {
    CHECK_FALSE(nic.turns.next_is_together(now, nic.devices));  // as no device moves anything
    // Much is flushed in every other turn, as a request and its answer take turns.
    if (programs != 0 && now / (20 * kUs) % 2 == 0) nic.flush(programs);
  }
  CHECK(nic.turns.stats().most_threads == (programs == 0 ? 1 : kThreads));
  CHECK((nic.turns.stats().shared_moves != 0) == (programs != 0));
}

}  // namespace rocemu::daemon
