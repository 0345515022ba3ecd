// The probe timer and the measurement of round trips by themselves.
#include "emulator/transport/requester/probe_timer.h"

#include <catch2/catch.hpp>

#include "emulator/transport/requester/round_trip_meter.h"

namespace rocemu::transport {

namespace {

using wire::Psn;
using Next = ProbeTimer::Next;

constexpr TimeNs kRttNs = 10'000;
constexpr TimeNs kWaitNs = RttEstimator::kFloorNs;
constexpr uint32_t kPackets = 8;  // that congestion control allows

// A timer that knows the round trip, with PSNs 10 to 29 in flight and a probe of 10 sent.
struct Probing : ProbeTimer {
  explicit Probing(bool for_data = false) {
    on_progress(Psn(10), Psn(30), kRttNs, kPackets);
    on_sent(0, Psn(30), true, 1);
    expire(kWaitNs, true);
    expire(2 * kWaitNs, true);
    begin(Psn(10), for_data);
    on_sent(2 * kWaitNs, Psn(11), true, 1);
  }
  Next answer(uint32_t una) { return on_progress(Psn(una), Psn(30), std::nullopt, kPackets); }
};

}  // namespace

TEST_CASE("A round trip is that of a packet that was sent once and is answered") {
  RoundTripMeter meter;
  meter.on_sent(10, Psn(0), Psn(1), false, false);  // the first one, answered or not
  CHECK(meter.on_progress(50, Psn(1)) == 40u);
  meter.on_sent(100, Psn(1), Psn(2), false, false);
  CHECK_FALSE(meter.on_progress(200, Psn(2)));
  meter.on_sent(300, Psn(2), Psn(3), false, true);
  meter.on_sent(400, Psn(3), Psn(4), false, true);  // one at a time
  CHECK_FALSE(meter.on_progress(500, Psn(2)));
  CHECK(meter.on_progress(700, Psn(4)) == 400u);
  CHECK_FALSE(meter.on_progress(800, Psn(4)));
}

TEST_CASE("A packet that was sent twice is no measure") {
  RoundTripMeter meter;
  meter.on_sent(100, Psn(1), Psn(2), false, true);
  SECTION("the timed one") { meter.on_sent(200, Psn(1), Psn(2), true, true); }
  SECTION("the timed one, within a READ") { meter.on_sent(200, Psn(0), Psn(9), true, true); }
  CHECK_FALSE(meter.on_progress(300, Psn(2)));
  meter.on_sent(400, Psn(2), Psn(3), false, true);
  meter.on_sent(450, Psn(1), Psn(2), true, true);  // another one does no harm
  CHECK(meter.on_progress(500, Psn(3)) == 100u);
}

TEST_CASE("After a NAK copies are a measure, since the responder has thrown away the first ones") {
  RoundTripMeter meter;
  meter.on_sent(100, Psn(1), Psn(2), false, true);
  meter.on_sent(150, Psn(2), Psn(3), false, true);
  const bool thrown_away = GENERATE(true, false);
  meter.on_sending_again(thrown_away);
  meter.on_sent(400, Psn(1), Psn(2), true, true);
  const std::optional<TimeNs> rtt = meter.on_progress(500, Psn(2));
  CHECK(rtt.has_value() == thrown_away);
  if (rtt) CHECK(*rtt == 100u);
}

TEST_CASE("The timer runs when a round trip is known and an answer is owed") {
  ProbeTimer timer;
  timer.on_sent(0, Psn(2), true, 15);
  CHECK(timer.deadline() == kNever);
  timer.restart(0, true, 16);  // a whole burst without an answer
  CHECK(timer.deadline() == RttEstimator::kUnknownNs);
  timer.restart(0, false, 16);
  CHECK(timer.on_progress(Psn(2), Psn(2), kRttNs, kPackets) == Next::go_on);
  timer.on_sent(1000, Psn(3), false, 1);
  CHECK(timer.deadline() == kNever);
  timer.on_sent(2000, Psn(4), true, 1);
  CHECK(timer.deadline() == 2000 + kWaitNs);
  timer.on_sent(3000, Psn(5), true, 1);
  CHECK(timer.deadline() == 2000 + kWaitNs);
  timer.restart(5000, true, 1);
  CHECK(timer.deadline() == 5000 + kWaitNs);
  timer.restart(5000, false, 1);
  CHECK(timer.deadline() == kNever);
}

TEST_CASE("The first expiry is put off by a quarter, the second one probes and backs off") {
  ProbeTimer timer;
  timer.on_progress(Psn(2), Psn(2), kRttNs, kPackets);
  timer.on_sent(0, Psn(3), true, 1);
  CHECK_FALSE(timer.expire(kWaitNs, true));
  CHECK(timer.deadline() == kWaitNs + kWaitNs / 4);
  CHECK(timer.expire(kWaitNs + kWaitNs / 4, true));
  CHECK(timer.deadline() == kNever);
  timer.begin(Psn(2), false);
  timer.on_sent(0, Psn(3), true, 1);
  CHECK(timer.deadline() == 2 * kWaitNs);
}

TEST_CASE("Without an ACK timeout there is no probe") {
  ProbeTimer timer;
  timer.on_progress(Psn(2), Psn(2), kRttNs, kPackets);
  timer.on_sent(0, Psn(3), true, 1);
  CHECK_FALSE(timer.expire(kWaitNs, false));
  CHECK(timer.deadline() == kNever);
}

TEST_CASE("A probe narrows the window to a packet, and answers to it open it twofold") {
  Probing timer;
  CHECK(timer.window(kPackets) == 1);
  CHECK(timer.answer(11) == Next::go_on);
  CHECK(timer.window(kPackets) == 2);
  timer.on_sent(0, Psn(13), true, 1);
  CHECK(timer.answer(13) == Next::go_on);
  CHECK(timer.window(kPackets) == 4);
  timer.on_sent(0, Psn(17), true, 1);
  CHECK(timer.answer(15) == Next::go_on);
  CHECK(timer.window(kPackets) == kPackets);
  CHECK(timer.window(4 * kPackets) == kPackets);
  timer.on_sent(0, Psn(23), true, 1);
  CHECK(timer.answer(17) == Next::go_on);
  CHECK(timer.window(4 * kPackets) == 4 * kPackets);
}

TEST_CASE("An answer to more than was sent again asks for the next probe") {
  Probing timer;
  CHECK(timer.answer(20) == Next::probe);
  timer.begin(Psn(20), false);
  CHECK(timer.window(kPackets) == 1);
  CHECK(timer.answer(30) == Next::go_on);  // nothing is in flight any more
  CHECK(timer.window(kPackets) == kPackets);
}

TEST_CASE("The answer to a READ that was sent again goes on where sending was") {
  Probing timer(true);
  timer.on_sent(0, Psn(14), true, 1);
  CHECK(timer.answer(12) == Next::go_on);
  CHECK(timer.window(kPackets) == 1);
  CHECK(timer.answer(14) == Next::resume);
  CHECK(timer.window(kPackets) == kPackets);
}

TEST_CASE("A timer that is stopped leaves the window alone") {
  Probing timer;
  timer.stop();
  CHECK(timer.deadline() == kNever);
  CHECK(timer.window(kPackets) == kPackets);
  CHECK(timer.answer(20) == Next::go_on);
}

}  // namespace rocemu::transport
