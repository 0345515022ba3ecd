#include "emulator/daemon/faults/program_names.h"

#include <catch2/catch.hpp>

namespace rocemu::daemon {

TEST_CASE("A program's name is read once, and believed for a while") {
  TimeNs now = 1;
  int reads = 0;
  std::string comm = "old";
  ProgramNames names(
      [&](pid_t) {
        ++reads;
        return comm;
      },
      [&] { return now; });
  CHECK(names.of(7) == "old");
  comm = "new";
  now += ProgramNames::kBelievedNs - 1;
  CHECK(names.of(7) == "old");
  CHECK(reads == 1);
  CHECK(names.of(8) == "new");
  ++now;
  CHECK(names.of(7) == "new");
  CHECK(reads == 3);
}

TEST_CASE("The names that are kept have a bound") {
  int reads = 0;
  ProgramNames names(
      [&](pid_t pid) {
        ++reads;
        return std::to_string(pid);
      },
      [] { return TimeNs{1}; });
  constexpr auto kMax = static_cast<pid_t>(ProgramNames::kMax);
  for (pid_t pid = 1; pid <= kMax + 1; ++pid) CHECK(names.of(pid) == std::to_string(pid));
  CHECK(names.of(1) == "1");
  CHECK(reads == kMax + 2);
}

}  // namespace rocemu::daemon
