#include "emulator/daemon/engine/command_queue.h"

#include <catch2/catch.hpp>
#include <vector>

namespace rocemu::daemon {
namespace {

TimeNs now = 0;

TurnBudget new_turn() {
  return TurnBudget(now, [] { return now; });
}

}  // namespace

TEST_CASE("commands are run in order, for as long as a turn may take, and the rest in the next") {
  CommandQueue commands;
  std::vector<int> run;
  const auto post = [&](int number, TimeNs takes) {
    commands.post(Task([&run, number, takes] {
      run.push_back(number);
      now += takes;
    }));
  };
  CHECK_FALSE(commands.pending());
  post(1, TurnBudget::kTurnNs / 2);
  post(2, TurnBudget::kTurnNs);
  post(3, 0);
  TurnBudget first = new_turn();
  commands.run(first);
  CHECK(run == std::vector<int>{1, 2});
  CHECK(commands.pending());

  post(4, 0);
  TurnBudget second = new_turn();
  commands.run(second);
  CHECK(commands.pending());
  commands.run(second);
  CHECK(run == std::vector<int>{1, 2, 3, 4});
  CHECK_FALSE(commands.pending());
}

TEST_CASE("a turn whose time is spent already still runs one command") {
  CommandQueue commands;
  int run = 0;
  for (int i = 0; i < 2; ++i) commands.post(Task([&run] { ++run; }));
  TurnBudget budget = new_turn();
  now += TurnBudget::kTurnNs;
  commands.run(budget);
  CHECK(run == 1);
  CHECK(commands.pending());
}

TEST_CASE("a command that finds no memory does not keep the next from its turn") {
  CommandQueue commands;
  bool run = false;
  commands.post(Task([] { throw std::bad_alloc(); }));
  commands.post(Task([&run] { run = true; }));
  TurnBudget budget = new_turn();
  commands.run(budget);
  CHECK(run);
}

}  // namespace rocemu::daemon
