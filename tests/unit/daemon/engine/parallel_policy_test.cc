#include "emulator/daemon/engine/parallel_policy.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/time.h"
#include "tests/unit/time_units.h"

namespace rocemu::daemon {
namespace {

constexpr TimeNs kTurnNs = 20 * kUs;
constexpr uint64_t kTurnBytes = 100'000;

// A NIC whose turns take `speedup` times as long one after the other as on two threads, and
// speedup^2 times as long as on four, up to its best number of them. Divided by program it has
// another speedup.
struct Machine {
  ParallelPolicy& policy;
  double speedup;
  unsigned devices = 2;
  unsigned best_threads = 2;
  TimeNs now = 1;
  uint64_t bytes_moved = 0;
  unsigned programs = 0;
  double speedup_by_program = 1.0;
  TurnDivision division{};  // of the last turn

  double speedup_of_turn() const {
    const double doublings = std::log2(std::min(division.threads, best_threads));
    const double too_many = std::max(1.0, double{1} * division.threads / best_threads);
    return std::pow(division.by_program ? speedup_by_program : speedup, doublings) / too_many;
  }
  // How many of the turns in that time were at the same time.
  double share(TimeNs length_ns, bool divisible = true) {
    TimeNs together_ns = 0;
    const TimeNs end = now + length_ns;
    const TimeNs begin = now;
    while (now < end) {
      const TurnShares shares =
          divisible ? TurnShares{devices, programs} : TurnShares{.devices = 1};
      division = policy.next_turn(now, bytes_moved, shares);
      const bool together = division.threads > 1;
      if (together)
        CHECK(division.threads <= (division.by_program ? shares.programs : shares.devices));
      const auto took = static_cast<TimeNs>(static_cast<double>(kTurnNs) / speedup_of_turn());
      now += took;
      bytes_moved += kTurnBytes;
      if (together) together_ns += took;
    }
    return static_cast<double>(together_ns) / static_cast<double>(now - begin);
  }
};

}  // namespace

TEST_CASE("turns at the same time are kept where they move more") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  machine.share(30 * kMs);
  CHECK(machine.share(200 * kMs) == 1.0);
  CHECK(machine.share(10'000 * kMs) > 0.97);
}

TEST_CASE("and are not where they move less, nor where they gain hardly anything") {
  const double speedup = GENERATE(0.3, 0.8, 1.0, 1.03);
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, speedup};
  machine.share(30 * kMs);
  CHECK(machine.share(200 * kMs) == 0.0);
  // Trials go on, ever more rarely.
  const double share = machine.share(20'000 * kMs);
  CHECK(share > 0.0);
  CHECK(share < 0.01);
}

TEST_CASE("what changes is found out") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  machine.share(20'000 * kMs);
  machine.speedup = 0.5;
  machine.share(4'050 * kMs);
  CHECK(machine.share(200 * kMs) == 0.0);
}

TEST_CASE("one window in three may go wrong") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  machine.share(9 * kMs);  // one to begin with, and one alone
  machine.speedup = 0.01;
  machine.share(4 * kMs);
  machine.speedup = 1.4;
  machine.share(18 * kMs);
  CHECK(machine.share(200 * kMs) == 1.0);
}

TEST_CASE("a short transfer is not worth a trial, and one device's is none") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 2.0};
  for (int i = 0; i < 100; ++i) {
    CHECK(machine.share(3 * kMs) == 0.0);
    CHECK(machine.share(6 * kMs, false) == 0.0);
  }
}

TEST_CASE("a load that comes and goes is on trial for a small part of the time") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 0.1};
  double together = 0;
  for (int i = 0; i < 100; ++i) {
    together += machine.share(15 * kMs) * 15;
    machine.share(5 * kMs, false);
  }
  CHECK(together > 0);
  CHECK(together < 0.04 * 100 * 20);
}

TEST_CASE("a transfer that goes on after a pause needs no new trial") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  machine.share(40 * kMs);
  machine.share(20 * kMs, false);
  CHECK(machine.share(4 * kMs + kTurnNs) < 0.01);
  CHECK(machine.share(100 * kMs) == 1.0);
}

TEST_CASE("a window with a pause in it is not counted") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  for (int i = 0; i < 20; ++i) {
    CHECK(machine.share(3 * kMs) == 0.0);
    machine.now += 100 * kMs;
  }
}

TEST_CASE("short pauses are part of what is measured") {
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  for (int i = 0; i < 500; ++i) {
    machine.share(kMs / 5);
    machine.now += kMs / 50;
    for (int idle = 0; idle < 200; ++idle)
      policy.next_turn(machine.now += 100, machine.bytes_moved, {});
  }
  CHECK(machine.share(50 * kMs) == 1.0);
}

TEST_CASE("a trial with a pause in it is given up, and what the last one showed is kept") {
  const double speedup = GENERATE(0.7, 1.4);
  const double kept = speedup > 1 ? 1.0 : 0.0;
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, speedup};
  machine.share(40 * kMs);
  REQUIRE(machine.share(50 * kMs) == kept);
  // Into the middle of the next trial.
  while (machine.share(kMs) == kept) {
  }
  machine.now += 10 * kMs;
  CHECK(machine.share(200 * kMs) == kept);
}

TEST_CASE("as many threads are taken as are fastest, and not more than there are devices") {
  const auto [devices, best, taken] = GENERATE(
      table<unsigned, unsigned, unsigned>({{64, 8, 8}, {64, 4, 4}, {64, 16, 12}, {3, 8, 3}}));
  ParallelPolicy policy(ParallelMode::automatic, 12);
  Machine machine{policy, 1.4, devices, best};
  machine.share(80 * kMs);
  CHECK(machine.share(100 * kMs) == 1.0);
  CHECK(machine.division.threads == taken);
}

TEST_CASE(
    "what is kept needs fewer threads when they do as well, and the same when they do not quite") {
  const double speedup = GENERATE(1.0, 1.02);
  ParallelPolicy policy(ParallelMode::automatic, 2);
  Machine machine{policy, 1.4};
  machine.share(40 * kMs);
  CHECK(machine.share(200 * kMs) == 1.0);
  machine.speedup = speedup;
  machine.share(20'000 * kMs);
  const double kept = speedup > 1.0 ? 1.0 : 0.0;
  CHECK(machine.share(20'000 * kMs) == Approx(kept).margin(0.03));
}

TEST_CASE("more devices than in the last trial are a reason for another one") {
  ParallelPolicy policy(ParallelMode::automatic, 16);
  Machine machine{policy, 1.4, 2, 8};
  machine.share(20'000 * kMs);
  CHECK(machine.division.threads == 2);
  machine.devices = 16;
  machine.share(100 * kMs);
  machine.share(kMs);
  CHECK(machine.division.threads == 8);
}

TEST_CASE("of devices at the same time and of programs, what moves more is taken") {
  const auto [by_device, by_program] =
      GENERATE(table<double, double>({{1.4, 1.1}, {1.1, 1.4}, {0.8, 1.2}, {1.2, 0.8}}));
  ParallelPolicy policy(ParallelMode::automatic, 8);
  Machine machine{policy, by_device, 2, 8};
  machine.programs = 8;
  machine.speedup_by_program = by_program;
  machine.share(90 * kMs);
  CHECK(machine.share(100 * kMs) == 1.0);
  // Eight programs can have more threads than two devices.
  const double programs_gain = std::pow(by_program, 3);
  const bool programs_win = programs_gain > by_device;
  CHECK(machine.division == TurnDivision{programs_win ? 8U : 2U, programs_win});
}

TEST_CASE("when programs become fewer than two, another way is found at once") {
  ParallelPolicy policy(ParallelMode::automatic, 8);
  Machine machine{policy, 1.2, 2, 8};
  machine.programs = 8;
  machine.speedup_by_program = 1.4;
  machine.share(20'000 * kMs);  // by now it is kept for seconds
  CHECK(machine.division == TurnDivision{8, true});
  machine.programs = 1;
  machine.share(40 * kMs);
  CHECK(machine.share(100 * kMs) == 1.0);
  CHECK(machine.division == TurnDivision{2, false});
}

TEST_CASE("a way that the last trial did not have is tried at once, however many it had") {
  ParallelPolicy policy(ParallelMode::automatic, 8);
  Machine machine{policy, 1.2, 8, 8};
  machine.speedup_by_program = 2.0;
  machine.share(20'000 * kMs);
  CHECK(machine.division == TurnDivision{8, false});
  machine.devices = 2;
  machine.share(10 * kMs);  // in windows without programs
  machine.programs = 3;     // with one thread there are four ways, as before
  machine.share(80 * kMs);
  CHECK(machine.division == TurnDivision{3, true});
}

TEST_CASE("who is told never or always does not measure") {
  ParallelPolicy never(ParallelMode::never, 2);
  CHECK(Machine{never, 2.0}.share(100 * kMs) == 0.0);
  ParallelPolicy always(ParallelMode::always, 2);
  CHECK(Machine{always, 0.5}.share(100 * kMs) == 1.0);
  ParallelPolicy programs(ParallelMode::programs, 2);
  CHECK(programs.next_turn(1, 0, {2, 2}) == TurnDivision{2, true});
}

}  // namespace rocemu::daemon
