#include "emulator/daemon/engine/parallel_turns.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/unit/daemon/nic_fixture.h"
#include "tests/unit/time_units.h"

namespace rocemu::daemon {
namespace {

constexpr unsigned kThreads = 4;
constexpr std::chrono::seconds kPatience{10};

// Two devices on a switch that have nothing to do themselves.
struct Turns {
  explicit Turns(ParallelMode mode) : turns(mode, kThreads, fabric) {
    for (uint32_t i = 0; i < 2; ++i)
      devices.push_back(std::make_unique<EngineDevice>(
          std::make_unique<device::Hca>(device::default_config(i), transport::TransportLimits{},
                                        gids),
          fabric.add_port({2, 0, 0, 0, 0, static_cast<uint8_t>(i)}, "port"), nic.pool(), true));
  }
  // As if a device flushed much of so many programs. Where they are to be moved at the same time,
  // two wait for each other.
  void flush(unsigned programs, bool at_the_same_time) {
    std::mutex mutex;
    std::condition_variable begins;
    std::vector<unsigned> moved;
    turns.movers().run(programs, [&](unsigned program) {
      std::unique_lock lock(mutex);
      moved.push_back(program);
      begins.notify_all();
      if (at_the_same_time)
        CHECK(begins.wait_for(lock, kPatience, [&] { return moved.size() >= 2; }));
    });
    std::ranges::sort(moved);
    CHECK(std::ranges::adjacent_find(moved) == moved.end());
    CHECK(moved.size() == programs);
  }

  NicFixture nic;
  GidDirectory gids;
  dpdk_io::Switch fabric{nic.pool()};
  std::vector<std::unique_ptr<EngineDevice>> devices;
  ParallelTurns turns;
};

}  // namespace

TEST_CASE("where programs share the threads their bytes are moved at the same time") {
  Turns nic(ParallelMode::programs);
  CHECK_FALSE(nic.turns.next_is_together(1000, nic.devices));
  nic.flush(2, true);
  CHECK(nic.turns.stats().most_threads == 2);
  nic.flush(9, true);
  nic.flush(200, true);  // more than there are bits in a word
  CHECK(nic.turns.stats().shared_moves == 3);
  CHECK(nic.turns.stats().parallel_turns == 0);
  CHECK(nic.turns.stats().most_threads == kThreads);
}

TEST_CASE("where devices have their turns at the same time their moves are not divided") {
  Turns nic(ParallelMode::always);
  CHECK(nic.turns.next_is_together(1000, nic.devices));
  nic.flush(9, false);
  CHECK(nic.turns.stats().shared_moves == 0);
  CHECK(nic.turns.stats().most_threads == 1);
}

TEST_CASE("programs that are moved at once are tried on several threads, and one alone is not") {
  Turns nic(ParallelMode::automatic);
  const unsigned programs = GENERATE(1u, 8u);
  constexpr TimeNs kStepNs = 100 * kUs;
  for (TimeNs now = 1; now < 100 * kMs; now += kStepNs) {
    CHECK_FALSE(nic.turns.next_is_together(now, nic.devices));  // as no device moves anything
    // In every other turn, as a request and its answer take turns.
    if (now / kStepNs % 2 == 0) nic.flush(programs, nic.turns.threads() > 1);
  }
  CHECK((nic.turns.stats().shared_moves > 50) == (programs > 1));
}

}  // namespace rocemu::daemon
