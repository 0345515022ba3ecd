#include "emulator/daemon/faults/armed_faults.h"

#include <catch2/catch.hpp>

#include "emulator/daemon/faults/port_overlay.h"
#include "emulator/fault/grammar.h"
#include "tests/unit/time_units.h"

namespace rocemu::daemon {
namespace {

using fault::Counted;
using fault::Kind;
using fault::What;

constexpr auto kAbout = [](const What&) { return true; };

ArmedFaults make() {
  return ArmedFaults({"rocemu0", "rocemu1"}, 0,
                     [](pid_t pid) { return pid == 7 ? "seven" : "other"; });
}

std::vector<uint32_t> add(ArmedFaults& faults, const std::string& text, TimeNs now_ns = 0) {
  fault::ParsedFaults parsed = fault::parse_faults(text);
  INFO(parsed.error);
  REQUIRE(parsed.error.empty());
  return faults.add(std::move(parsed.faults), now_ns);
}

}  // namespace

TEST_CASE("faults have ids, begin in time, and are taken back") {
  ArmedFaults faults = make();
  CHECK(faults.knows("all"));
  CHECK(faults.knows("rocemu1"));
  CHECK_FALSE(faults.knows("rocemu2"));
  CHECK(add(faults, "rocemu0 port-down after=2ms") == std::vector<uint32_t>{1});
  CHECK(add(faults, "rocemu1 quirks=irdma").size() == 4);
  CHECK(faults.next_ns() == 0);
  CHECK(faults.on_time(0).size() == 4);
  CHECK(faults.next_ns() == 2 * kMs);
  const auto changes = faults.on_time(2 * kMs);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].id == 1);
  CHECK(changes[0].begins);
  CHECK(faults.next_ns() == kNever);

  const auto ends = faults.remove(1);
  REQUIRE(ends);
  REQUIRE(ends->size() == 1);
  CHECK_FALSE((*ends)[0].begins);
  CHECK_FALSE(faults.remove(1));
  CHECK(faults.report().size() == 4);
  CHECK(faults.remove(0)->size() == 4);
  CHECK(faults.report().empty());
  CHECK(faults.remove(0)->empty());
}

TEST_CASE("a fault is about its device, program, QP and peer alone") {
  ArmedFaults faults = make();
  add(faults, "rocemu0 completion-status status=rem-op-err program=seven qp=3");
  faults.on_time(0);
  const auto strikes = [&](const Who& who) {
    return faults.strike(Kind::completion_status, who, kAbout).has_value();
  };
  CHECK(strikes({.device = 0, .qpn = 3, .program = 7}));
  CHECK_FALSE(strikes({.device = 1, .qpn = 3, .program = 7}));
  CHECK_FALSE(strikes({.device = 0, .qpn = 4, .program = 7}));
  CHECK_FALSE(strikes({.device = 0, .qpn = 3, .program = 8}));
  CHECK_FALSE(strikes({.device = 0, .qpn = 3}));
  CHECK_FALSE(faults.strike(Kind::completion_late, {.qpn = 3, .program = 7}, kAbout));
  CHECK(faults.report()[0].strikes == 1);

  add(faults, "all no-answer peer=10.77.0.2");
  faults.on_time(0);
  const uint8_t peer[] = {10, 77, 0, 2};
  CHECK(faults.active(Kind::no_answer, {.device = 1, .peer = IpAddress::of_ipv4(peer)}));
  CHECK_FALSE(faults.active(Kind::no_answer, {.device = 1}));
}

TEST_CASE("each fault counts all that it is about") {
  ArmedFaults faults = make();
  add(faults, "rocemu0 call-fails call=create-qp nth=2 errno=ENOMEM");
  add(faults, "rocemu0 call-fails call=create-qp nth=3 errno=EAGAIN");
  add(faults, "rocemu0 call-fails call=create-qp nth=3 errno=EIO");
  faults.on_time(0);
  for (const int error : {0, ENOMEM, EAGAIN, 0}) {
    const auto struck = faults.strike(Kind::call_fails, {}, kAbout);
    CHECK((struck ? struck->error : 0) == error);
  }
}

TEST_CASE("what stands ready at a device is what its active faults need") {
  ArmedFaults faults = make();
  CHECK(faults.needs(0) == FaultNeeds{});
  add(faults, "rocemu0 no-traffic direction=rx after=1ms for=1ms");
  add(faults, "rocemu0 slow rate=1gbit");
  add(faults, "rocemu0 qp-error request=2");
  add(faults, "rocemu1 slow rate=1gbit qp=3");
  CHECK(faults.needs(0) == FaultNeeds{});
  faults.on_time(0);
  CHECK(faults.needs(0).rate_bits_per_s == 1'000'000'000);
  CHECK(faults.needs(0).requests);
  CHECK_FALSE(faults.needs(0).drops_received);
  CHECK_FALSE(faults.needs(1).port());
  faults.on_time(kMs);
  CHECK(faults.needs(0).drops_received);
  CHECK_FALSE(faults.needs(0).drops_sent);
  faults.on_time(2 * kMs);
  CHECK_FALSE(faults.needs(0).drops_received);

  CHECK(faults.on_count(Counted::requests, {.device = 0}, 3 * kMs).empty());
  CHECK(faults.on_count(Counted::requests, {.device = 1}, 3 * kMs).empty());
  CHECK(faults.on_count(Counted::requests, {.device = 0}, 3 * kMs).size() == 1);
  CHECK_FALSE(faults.needs(0).requests);
}

TEST_CASE("there is an end to the number of faults, and those that are over make room") {
  ArmedFaults faults = make();
  for (size_t i = 0; i < ArmedFaults::kMax; ++i)
    REQUIRE(add(faults, i == 0 ? "all kill" : "all pause").size() == 1);
  CHECK(add(faults, "all pause").empty());
  faults.on_time(0);
  CHECK(add(faults, "all pause").size() == 1);
  CHECK(add(faults, "all pause").empty());
}

TEST_CASE("a port looks as active faults make it") {
  ArmedFaults faults = make();
  const device::PortConfig port = device::default_config(0).port;
  CHECK(with_faults(faults, 0, port) == port);
  add(faults, "rocemu0 port-down for=1ms");
  add(faults, "rocemu0 gid-removed index=0");
  add(faults, "rocemu0 gid-changed index=1 to=10.77.9.9");
  add(faults, "rocemu0 gid-removed index=99");
  faults.on_time(0);
  device::PortConfig seen = with_faults(faults, 0, port);
  CHECK_FALSE(seen.active);
  REQUIRE(seen.gids.size() == port.gids.size());
  CHECK(seen.gids[0].gid == wire::Gid{});
  CHECK(seen.gids[1].gid.bytes[14] == 9);
  CHECK(seen.gids[2] == port.gids[2]);
  CHECK(with_faults(faults, 1, port) == port);
  faults.on_time(kMs);
  CHECK(with_faults(faults, 0, port).active);
}

}  // namespace rocemu::daemon
