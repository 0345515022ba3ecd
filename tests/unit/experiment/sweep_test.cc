#include "emulator/experiment/command/sweep.h"

#include <catch2/catch.hpp>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::experiment {

TEST_CASE("a sweep is a command for each combination") {
  Sweep sweep;
  sweep.experiment = "load it.toml";
  sweep.out = "out";
  sweep.settings = {"nic.timeout=10"};
  sweep.keys = {parse_swept_key("seed=1,2"), parse_swept_key("workload.w.load=30%,50%,70%")};
  const auto commands = commands_of(sweep, "rocemu");
  REQUIRE(commands.size() == 6);
  CHECK(shell_line(commands[4]) ==
        "rocemu sim 'load it.toml' --out out/seed=2,workload.w.load=50% --quiet "
        "--set nic.timeout=10 --set seed=2 --set workload.w.load=50%");
}

TEST_CASE("what is no swept key") {
  for (const char* text : {"seed", "=1,2", "seed=", "seed=,"})
    CHECK_THROWS_AS(parse_swept_key(text), cli::Failure);
}

TEST_CASE("words for the shell") { CHECK(shell_line({"a", "", "it's"}) == "a '' 'it'\\''s'"); }

}  // namespace rocemu::experiment
