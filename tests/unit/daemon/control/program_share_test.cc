#include "emulator/daemon/control/program_share.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <system_error>
#include <vector>

namespace rocemu::daemon {

TEST_CASE("a process has its share with all its connections, and gets back what it gives up") {
  ProgramShares shares({.mappings = 3, .descriptors = 1});
  const auto connection = shares.of(10), other_connection = shares.of(10), stranger = shares.of(11);
  std::vector<ProgramShare::Charge> held{connection->mapping(), other_connection->mapping(),
                                         connection->mapping()};
  CHECK_THROWS_AS(connection->mapping(), std::system_error);
  CHECK_THROWS_AS(other_connection->mapping(), std::system_error);
  CHECK(stranger->mapping() != nullptr);
  CHECK(connection->descriptors(1) != nullptr);

  held.pop_back();
  held.push_back(other_connection->mapping());
  CHECK_THROWS_AS(connection->mapping(), std::system_error);
}

TEST_CASE("what outlives a connection still counts") {
  ProgramShares shares({.mappings = 1, .descriptors = 0});
  ProgramShare::Charge held = shares.of(10)->mapping();
  CHECK_THROWS_AS(shares.of(10)->mapping(), std::system_error);
  CHECK_THROWS_AS(shares.of(10)->descriptors(1), std::system_error);
  held.reset();
  CHECK(shares.of(10)->mapping() != nullptr);
}

TEST_CASE("a process has so many regions mapped, whatever else it has") {
  ProgramShares shares({.mappings = 0, .descriptors = 0, .mapped_files = 2});
  ProgramShare::Charge first = shares.of(10)->mapped_file();
  const auto second = shares.of(10)->mapped_file();
  CHECK_THROWS_AS(shares.of(10)->mapped_file(), std::system_error);
  first.reset();
  CHECK(shares.of(10)->mapped_file() != nullptr);
}

TEST_CASE("processes that are not visible share nothing") {
  ProgramShares shares({.mappings = 1, .descriptors = 1});
  const auto one = shares.of(0), other = shares.of(0);
  const ProgramShare::Charge held = one->mapping();
  CHECK(other->mapping() != nullptr);
}

TEST_CASE("a program does not have all that a process may have") {
  const ProgramShare::Limits limits = ProgramShare::Limits::of_this_process();
  CHECK(limits.mappings > 1000);
  CHECK(limits.descriptors > 10);
  CHECK(limits.descriptors <= static_cast<unsigned long>(::sysconf(_SC_OPEN_MAX)) / 4);
}

}  // namespace rocemu::daemon
