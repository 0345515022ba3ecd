#include "emulator/cli/options.h"

#include <catch2/catch.hpp>

#include "emulator/cli/commands.h"
#include "emulator/cli/daemon_process.h"
#include "emulator/cli/process/exit_codes.h"

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
  const Options options = parse_options({"run", "--devices", "4", "--pcap", "/p", "--pcap-limit-mb",
                                         "64", "--log-level", "debug", "--", "true"});
  CHECK(daemon_command("/d", "/s", options.nic, 7, Lifetime::kOfParent) ==
        Words{"/d", "--dir", "/s", "--ready-fd", "7", "--devices", "4", "--pcap", "/p",
              "--pcap-limit-mb", "64", "--log-level", "debug", "--die-with-parent"});
}

TEST_CASE("what of a trace is said reaches the daemon", "[cli]") {
  const Options options =
      parse_options({"up", "--trace-on-error", "/t", "--trace-last", "2048", "--trace-filter",
                     "device=rocemu0,qp=17", "--trace-limit-mb", "9"});
  CHECK(daemon_command("/d", "/s", options.nic, 7, Lifetime::kOwn) ==
        Words{"/d", "--dir", "/s", "--ready-fd", "7", "--trace-on-error", "/t", "--trace-last",
              "2048", "--trace-filter", "device=rocemu0,qp=17", "--trace-limit-mb", "9"});
}

TEST_CASE("impairments are given as often as there are links", "[cli]") {
  const Options options = parse_options(
      {"run", "--impair", "loss=1%,delay=20us", "--impair", "rocemu1.rx:dup=1%", "--", "true"});
  CHECK(daemon_command("/d", "/s", options.nic, 7, Lifetime::kOwn) ==
        Words{"/d", "--dir", "/s", "--ready-fd", "7", "--impair", "loss=1%,delay=20us", "--impair",
              "rocemu1.rx:dup=1%"});
  CHECK(exit_code_of({"run", "--impair", "--", "true"}) == kOwnFailure);
}

TEST_CASE("metrics are served where it is said", "[cli]") {
  const auto asked = [](const Words& words) {
    return daemon_command("/d", "/s", parse_options(words).nic, 7, Lifetime::kOwn).back();
  };
  CHECK(asked({"up", "--metrics", "9400"}) == "9400");
  CHECK(asked({"run", "--metrics", "[::1]:0", "--", "true"}) == "[::1]:0");
  CHECK(asked({"up"}) == "7");
  CHECK(parse_options({"metrics", "--name", "lab"}).command == Command::kMetrics);
  CHECK(exit_code_of({"metrics", "more"}) == kUsage);
}

TEST_CASE("a NIC is shaken by names, or by none for all") {
  const auto shaken = [](const Words& words) {
    return daemon_command("/d", "/s", parse_options(words).nic, 7, Lifetime::kOwn).back();
  };
  CHECK(shaken({"run", "--shake", "--", "true"}) == "--shake=all");
  CHECK(shaken({"run", "--shake", "placement,rnr", "--", "true"}) == "--shake=placement,rnr");
  CHECK(shaken({"run", "--shake=-late-acks,seed=7", "--", "true"}) == "--shake=-late-acks,seed=7");
  CHECK(shaken({"up", "--shake"}) == "--shake=all");
  CHECK(shaken({"up"}) == "7");
}

TEST_CASE("a network is a file that is there, and the NIC gets its name", "[cli]") {
  const Options options = parse_options({"run", "--network", "/dev/null", "--", "true"});
  CHECK(daemon_command("/d", "/s", options.nic, 7, Lifetime::kOwn) ==
        Words{"/d", "--dir", "/s", "--ready-fd", "7", "--network", "/dev/null"});
  CHECK(exit_code_of({"run", "--network", "/nowhere", "--", "true"}) == kOwnFailure);
}

TEST_CASE("bad impairments are refused before a NIC starts", "[cli]") {
  NicOptions options;
  options.impair = {"loss=1%", "loss=1"};
  try {
    checked(options);
    FAIL("accepted");
  } catch (const Failure& failure) {
    CHECK(failure.exit_code() == kUsage);
    CHECK(std::string(failure.what()).starts_with("--impair: loss: '1' has no unit"));
  }
}

TEST_CASE("links are set by device, direction and spec, and shown by device", "[cli]") {
  Options options = parse_options({"link", "set", "--name", "lab", "rocemu0", "loss=1%,dup=1%"});
  CHECK(options.command == Command::kLinkSet);
  CHECK(options.name == "lab");
  CHECK(options.link == Words{"rocemu0", "loss=1%,dup=1%"});
  CHECK(parse_options({"link", "set", "all", "rx", "none"}).link == Words{"all", "rx", "none"});
  options = parse_options({"link", "show", "--json"});
  CHECK(options.command == Command::kLinkShow);
  CHECK(options.json);
  CHECK(options.link.empty());
  CHECK(parse_options({"link", "show", "rocemu1"}).link == Words{"rocemu1"});
}

TEST_CASE("faults are words, and options of a NIC that starts", "[cli]") {
  Options options = parse_options({"fault", "--name", "lab", "rocemu0", "port-down", "for=1s"});
  CHECK(options.command == Command::kFault);
  CHECK(options.name == "lab");
  CHECK(options.fault == Words{"rocemu0", "port-down", "for=1s"});
  options = parse_options({"fault", "list", "--json"});
  CHECK(options.fault == Words{"list"});
  CHECK(options.json);
  CHECK(parse_options({"fault", "clear", "3"}).fault == Words{"clear", "3"});
  CHECK(exit_code_of({"fault"}) == kUsage);
  options = parse_options({"up", "--fault", "all kill at=5s", "--fault", "rocemu0 pause"});
  CHECK(options.nic.faults == Words{"all kill at=5s", "rocemu0 pause"});
}

TEST_CASE("bad command lines of link are usage errors", "[cli]") {
  CHECK(exit_code_of({"link"}) == kUsage);
  CHECK(exit_code_of({"link", "bogus"}) == kUsage);
  CHECK(exit_code_of({"link", "set"}) == kUsage);
  CHECK(exit_code_of({"link", "set", "rocemu0"}) == kUsage);
  CHECK(exit_code_of({"link", "set", "rocemu0", "tx", "loss=1%", "dup=1%"}) == kUsage);
  CHECK(exit_code_of({"link", "show", "rocemu0", "rocemu1"}) == kUsage);
  CHECK(exit_code_of({"link", "set", "rocemu0", "loss=1%", "--", "true"}) == kUsage);
  CHECK_THROWS_AS(parse_options({"link", "set", "--help"}), PrintAndExit);
}

TEST_CASE("run and exec share memory when they are told to", "[cli]") {
  CHECK(parse_options({"run", "--share-memory", "--", "true"}).share_memory);
  CHECK(parse_options({"exec", "--share-memory", "--", "true"}).share_memory);
  const Options options = parse_options({"run", "--", "true", "--share-memory"});
  CHECK_FALSE(options.share_memory);
  CHECK(options.program == Words{"true", "--share-memory"});
  CHECK(exit_code_of({"up", "--share-memory"}) == kUsage);
}

TEST_CASE("what checks are to leave behind is refused where nothing is checked", "[cli]") {
  CHECK(parse_options({"run", "--check", "--", "true"}).check.names == "all");
  CHECK(parse_options({"run", "--check=leaks", "--check-report", "x.json", "--", "true"})
            .check.report == "x.json");
  CHECK(exit_code_of({"run", "--check-report", "x.json", "--", "true"}) == kOwnFailure);
  CHECK(exit_code_of({"run", "--check-exit-code", "1", "--", "true"}) == kOwnFailure);
  CHECK(parse_options({"run", "--check=", "--", "true"}).check.names == "all");
  CHECK(exit_code_of({"run", "--check=polled-memory", "--", "true"}) == kOwnFailure);
}

TEST_CASE("findings are asked for by the NIC", "[cli]") {
  const Options options = parse_options({"findings", "--name", "lab", "--check-report", "x.xml"});
  CHECK(options.command == Command::kFindings);
  CHECK(options.name == "lab");
  CHECK(options.check.report == "x.xml");
  CHECK(parse_options({"findings", "--json", "--check-exit-code", "0"}).check.exit_code == 0);
  CHECK(exit_code_of({"findings", "--check"}) == kUsage);
  CHECK(exit_code_of({"findings", "--", "true"}) == kUsage);
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
