#include "emulator/cli/options.h"

#include <catch2/catch.hpp>

#include "emulator/cli/exit_codes.h"

namespace rocemu::cli {
namespace {

using Words = std::vector<std::string>;

int exit_code_of(const Words& arguments) {
  try {
    parse_options(arguments);
  } catch (const Failure& failure) {
    CHECK(std::string(failure.what()).find('\n') == std::string::npos);
    return failure.exit_code();
  }
  return kSuccess;
}

TEST_CASE("what follows -- is the program's, untouched", "[cli]") {
  const Options options =
      parse_options({"run", "--devices", "3", "--", "bash", "-c", "x", "--", "--help"});
  CHECK(options.command == Command::kRun);
  CHECK(options.nic.devices == 3U);
  CHECK(options.program == Words{"bash", "-c", "x", "--", "--help"});
}

TEST_CASE("what is not said is left to the daemon", "[cli]") {
  const Options options = parse_options({"up"});
  CHECK_FALSE(options.nic.devices.has_value());
  CHECK(daemon_command("/d", "/s", options.nic, 7, Lifetime::kOwn) ==
        Words{"/d", "--dir", "/s", "--ready-fd", "7"});
  CHECK(options.name_or_default() == "default");
}

TEST_CASE("what is said reaches the daemon", "[cli]") {
  const Options options = parse_options(
      {"run", "--devices", "4", "--pcap", "/p", "--log-level", "debug", "--", "true"});
  CHECK(daemon_command("/d", "/s", options.nic, 7, Lifetime::kOfParent) ==
        Words{"/d", "--dir", "/s", "--ready-fd", "7", "--devices", "4", "--pcap", "/p",
              "--log-level", "debug", "--die-with-parent"});
}

TEST_CASE("bad command lines of run and exec are rocemu's own failure", "[cli]") {
  CHECK(exit_code_of({"run"}) == kOwnFailure);
  CHECK(exit_code_of({"run", "--"}) == kOwnFailure);
  CHECK(exit_code_of({"run", "--", ""}) == kOwnFailure);
  CHECK(exit_code_of({"run", "true"}) == kOwnFailure);
  CHECK(exit_code_of({"run", "--bogus", "--", "true"}) == kOwnFailure);
  CHECK(exit_code_of({"run", "--devices", "x", "--", "true"}) == kOwnFailure);
  CHECK(exit_code_of({"exec"}) == kOwnFailure);
}

TEST_CASE("other bad command lines are usage errors", "[cli]") {
  CHECK(exit_code_of({}) == kUsage);
  CHECK(exit_code_of({"bogus"}) == kUsage);
  CHECK(exit_code_of({"--", "true"}) == kUsage);
  CHECK(exit_code_of({"down", "extra"}) == kUsage);
  CHECK(exit_code_of({"down", "--", "true"}) == kUsage);
  CHECK(exit_code_of({"up", "--devices", "0"}) == kUsage);
  CHECK(exit_code_of({"up", "--devices", "-1"}) == kUsage);
  CHECK(exit_code_of({"up", "--config", "/nonexistent"}) == kUsage);
  CHECK(exit_code_of({"up", "--name", "../x"}) == kUsage);
  CHECK(exit_code_of({"up", "--name", ""}) == kUsage);
  CHECK(exit_code_of({"status", "--name", "a", "--socket", "/x/nic.sock"}) == kUsage);
}

TEST_CASE("help and version are printed, not obeyed", "[cli]") {
  CHECK_THROWS_AS(parse_options({"--help"}), PrintAndExit);
  CHECK_THROWS_AS(parse_options({"run", "--help"}), PrintAndExit);
  CHECK_THROWS_AS(parse_options({"--version"}), PrintAndExit);
}

}  // namespace
}  // namespace rocemu::cli
