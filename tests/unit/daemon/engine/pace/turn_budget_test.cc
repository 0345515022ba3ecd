#include "emulator/daemon/engine/pace/turn_budget.h"

#include <catch2/catch.hpp>

namespace rocemu::daemon {
namespace {

TimeNs now = 0;
int looks = 0;

TimeNs read_clock() {
  ++looks;
  return now;
}

}  // namespace

TEST_CASE("a turn is over after its 20 us, and its clock is read every 16 pieces") {
  now = 5000;
  looks = 0;
  TurnBudget budget(now, &read_clock);
  now += TurnBudget::kTurnNs;
  for (int i = 0; i < 15; ++i) budget.charge(1);
  CHECK_FALSE(budget.spent());
  CHECK(looks == 0);
  budget.charge(1);
  CHECK(budget.spent());
  CHECK(looks == 1);
}

TEST_CASE("a turn that is quick may take as many pieces as there are") {
  now = 5000;
  TurnBudget budget(now, &read_clock);
  for (int i = 0; i < 1000; ++i) budget.charge(64);
  CHECK_FALSE(budget.spent());
}

}  // namespace rocemu::daemon
