#include "emulator/cli/top/model.h"

#include <catch2/catch.hpp>

#include "emulator/cli/top/reasons.h"
#include "tests/unit/cli/top/reports.h"

namespace rocemu::cli::top {
namespace {

TEST_CASE("rates are differences of two reports, by the NIC's own time", "[top]") {
  const View view = example_view();
  CHECK(view.nic == "lab");
  CHECK(view.interval_s == 2);
  REQUIRE(view.qps.size() == 3);
  const Qp& sender = view.qps[0];
  REQUIRE(sender.rates);
  CHECK(sender.rates->tx_bits == 500e6);
  CHECK(sender.rates->messages == 500);
  CHECK(sender.rates->retransmissions == 0);
  CHECK(sender.program == "ib_write_bw");
  CHECK(sender.waits_for == "window");
  CHECK(sender.now.allowed_mbps == 25000.5);
  CHECK_FALSE(sender.now.window_bytes);
  // MSNs have 24 bits.
  const Qp& receiver = view.qps[2];
  REQUIRE(receiver.rates);
  CHECK(receiver.rates->rx_bits == 500e6);
  CHECK(receiver.rates->messages == 500);
  CHECK(receiver.rates->rnrs == 50);
}

TEST_CASE("a first report has no rates", "[top]") {
  const Report now = read_report(status_at(10, 1000, 5, 5));
  const View view = make_view(nullptr, now, name_of);
  CHECK(view.interval_s == 0);
  CHECK_FALSE(view.qps[0].rates);
  CHECK_FALSE(view.devices[0].rates);
  CHECK_FALSE(view.devices[0].paused_share);
  CHECK_FALSE(view.programs[0].rates);
}

TEST_CASE("a QP that is new, that was reset, or is another's now has no rates", "[top]") {
  Json old = status_at(10, 1'000'000, 100, 0);
  const Report now = read_report(status_at(11, 900, 1, 0));
  SECTION("it was reset: its counts went back") {
    const Report before = read_report(old);
    CHECK_FALSE(make_view(&before, now, name_of).qps[0].rates);
  }
  SECTION("it is new") {
    old["devices"][0]["qps"].erase(0);
    const Report before = read_report(old);
    CHECK_FALSE(make_view(&before, now, name_of).qps[0].rates);
  }
  SECTION("it belongs to another program") {
    old = status_at(10, 900, 1, 0);
    old["devices"][0]["qps"][0]["program"] = 502u;
    const Report before = read_report(old);
    CHECK_FALSE(make_view(&before, now, name_of).qps[0].rates);
  }
}

TEST_CASE("counts of requests come modulo 2^32", "[top]") {
  const Report before = read_report(status_at(10, 0, 0xfffffff0, 0));
  const Report now = read_report(status_at(11, 0, 0x10, 0));
  CHECK(make_view(&before, now, name_of).qps[0].rates->messages == 32);
}

TEST_CASE("programs and devices are sums over their QPs", "[top]") {
  const View view = example_view();
  REQUIRE(view.programs.size() == 2);
  CHECK(view.programs[0].pid == 500);
  CHECK(view.programs[0].qps == 1);
  CHECK(view.programs[0].waiting_qps == 1);
  CHECK(view.programs[0].oldest_age_us == 120.5);
  CHECK(view.programs[0].waits_for == "window");
  CHECK(view.programs[1].qps == 2);
  CHECK(view.programs[1].waiting_qps == 1);
  CHECK(view.programs[1].waits_for == "receives");
  CHECK(view.programs[1].rates->rx_bits == 500e6);
  REQUIRE(view.devices.size() == 2);
  CHECK(view.devices[0].rates->tx_bits == 1000e6);  // whole frames
  CHECK(view.devices[0].rates->messages == 500);
  CHECK(view.devices[1].now.state == "DOWN");
  // rocemu0 has three QPs, and the report lists two.
  CHECK(view.qps_not_shown == 1);
}

TEST_CASE("behind a port that is paused most of the time the path is what is waited for", "[top]") {
  const auto waits = [](std::uint64_t paused_ns) {
    const Report before = read_report(status_at(10, 0, 0, 0));
    const Report now = read_report(status_at(12, 0, 0, 0, paused_ns));
    const View view = make_view(&before, now, name_of);
    CHECK(view.qps[2].waits_for == "receives");  // at another port, for something else
    return view.qps[0].waits_for;
  };
  CHECK(waits(900'000'000) == "window");
  CHECK(waits(1'100'000'000) == "pause");
}

TEST_CASE("a report of another kind is taken for what it has", "[top]") {
  for (const char* text : {"{}", "[]", "null", "3", R"({"devices": 3})", R"({"devices": [3, "x"]})",
                           R"({"devices": [{"name": 3, "qps": {"a": 1}, "port": []}]})",
                           R"({"devices": [{"qps": [1, "x", {"qpn": -1, "program": 1e99}]}]})",
                           R"({"network": [1], "uptime_s": "x"})"}) {
    const Report report = read_report(Json::parse(text));
    const View view = make_view(&report, report, name_of);
    CHECK(view.interval_s == 0);
  }
  const Report report = read_report(Json::parse(R"({"devices": [{"name": "a\u001b[2Jb\u00e9"}]})"));
  CHECK(report.devices.at(0).name == "a?[2Jb??");
}

TEST_CASE("each reason has a word and a sentence, and a new one is shown as it is", "[top]") {
  Qp qp;
  for (const char* name :
       {"state", "rnr", "window", "fence", "reads", "earlier", "pace", "rate_limit", "turn",
        "answer", "retransmission", "receives", "polls", "pause"}) {
    qp.waits_for = name;
    CHECK(reason_word(name).size() <= 12);
    CHECK(reason_sentence(qp).find("The NIC says") == std::string::npos);
  }
  CHECK(reason_word("") == "-");
  CHECK(reason_word("moonlight") == "moonlight");
  qp.waits_for = "moonlight";
  CHECK(reason_sentence(qp) == "The NIC says: moonlight.");
  qp.waits_for = "rnr";
  qp.now.wait_left_us = 640;
  CHECK(reason_sentence(qp).find("640us") != std::string::npos);
}

}  // namespace
}  // namespace rocemu::cli::top
