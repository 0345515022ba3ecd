// Which frames are held back on their arrival, and for how long.
#include <catch2/catch.hpp>
#include <map>

#include "emulator/shake/frames/late_acks.h"
#include "emulator/shake/frames/overtaking.h"
#include "emulator/wire/opcode.h"
#include "tests/unit/shake/fakes.h"
#include "tests/unit/time_units.h"

namespace rocemu::shake {
namespace {

using wire::Operation;
using wire::Transport;

wire::Packet packet(Transport transport, Operation operation, uint32_t qpn) {
  wire::Packet made;
  made.bth.opcode = wire::bth_opcode(transport, operation);
  made.bth.destination_qp = wire::Qpn{qpn};
  return made;
}

}  // namespace

TEST_CASE("answers are late, in their order, and never by more than half of the timeout") {
  constexpr TimeNs kTimeout = 4'096'000;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    LateAcks late(test::dice(seed), [](wire::Qpn) { return kTimeout; });
    unsigned held = 0;
    TimeNs last = 0;
    for (TimeNs now = kUs; now < 5000 * kUs; now += 2 * kUs) {
      const Operation operation =
          now % (4 * kUs) == 0 ? Operation::acknowledge : Operation::read_response_middle;
      const TimeNs due = late.due(now, packet(Transport::rc, operation, 17));
      CHECK(due >= now);
      CHECK(due >= last);
      CHECK(due <= now + kTimeout / 2);
      held += due > now;
      last = due;
    }
    CHECK(held > 10);
  }
}

TEST_CASE("the streams of two QPs are late each for itself, and requests never") {
  LateAcks late(test::dice(5), [](wire::Qpn) { return TimeNs{0}; });
  unsigned apart = 0;
  for (TimeNs now = kUs; now < 2000 * kUs; now += kUs) {
    const TimeNs one = late.due(now, packet(Transport::rc, Operation::acknowledge, 17));
    const TimeNs other = late.due(now, packet(Transport::rc, Operation::acknowledge, 18));
    apart += one != other;
    CHECK(late.due(now, packet(Transport::rc, Operation::send_only, 17)) == now);
    CHECK(late.due(now, packet(Transport::ud, Operation::send_only, 17)) == now);
  }
  CHECK(apart > 100);
}

TEST_CASE("datagrams overtake each other") {
  Overtaking overtaking(test::dice(1));
  unsigned overtaken = 0;
  TimeNs last = 0;
  for (TimeNs now = kUs; now < 1000 * kUs; now += kUs) {
    const TimeNs due = overtaking.due(now, packet(Transport::ud, Operation::send_only, 17));
    CHECK(due >= now);
    CHECK(due < now + 1000 * kUs);
    overtaken += due < last;
    last = due;
  }
  CHECK(overtaken > 50);
}

TEST_CASE("packets of a UC connection keep their order, and are overtaken by others'") {
  Overtaking overtaking(test::dice(1));
  std::map<uint32_t, TimeNs> last;
  unsigned overtaken = 0;
  for (TimeNs now = kUs; now < 5000 * kUs; now += kUs) {
    const uint32_t qpn = 17 + static_cast<uint32_t>(now / kUs % 3);
    const TimeNs due = overtaking.due(now, packet(Transport::uc, Operation::write_middle, qpn));
    CHECK(due >= last[qpn]);
    last[qpn] = due;
    for (const auto& [other, theirs] : last) overtaken += other != qpn && theirs > due;
  }
  CHECK(overtaken > 50);
}

TEST_CASE("reliable requests and management are not overtaken") {
  Overtaking overtaking(test::dice(1));
  for (TimeNs now = kUs; now < 200 * kUs; now += kUs) {
    CHECK(overtaking.due(now, packet(Transport::rc, Operation::send_only, 17)) == now);
    CHECK(overtaking.due(now, packet(Transport::rc, Operation::acknowledge, 17)) == now);
    CHECK(overtaking.due(now, packet(Transport::ud, Operation::send_only, 1)) == now);
  }
}

}  // namespace rocemu::shake
