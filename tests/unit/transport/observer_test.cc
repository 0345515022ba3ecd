// What an endpoint says of its QPs: counters of each of them, and the events an observer is told.
#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "emulator/sim/packet_text.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

struct Told {
  wire::Qpn qpn;
  TraceEvent event;
  uint32_t value;
};

class Recorder : public Observer {
 public:
  void on_event(wire::Qpn qpn, TraceEvent event, uint32_t value) noexcept override {
    told.push_back({qpn, event, value});
  }
  std::vector<uint32_t> values(TraceEvent event) const {
    std::vector<uint32_t> found;
    for (const Told& one : told)
      if (one.event == event) found.push_back(one.value);
    return found;
  }
  std::vector<Told> told;
};

// A WRITE of three packets, the second of which is lost the first time.
void write_with_a_gap(Pair& pair) {
  const Buffer near = pair.a.buffer(3 * 1024, 1);
  const Buffer far = pair.b.buffer(3 * 1024);
  pair.lose = [lost = false](const Sent& frame) mutable {
    return frame.from_a && frame.psn == 101 && !std::exchange(lost, true);
  };
  pair.a.post(write(near, far));
  pair.drive();
  REQUIRE(pair.b.bytes(far) == pair.a.bytes(near));
}

}  // namespace

TEST_CASE("Counters are a QP's own, and the port's are their sum") {
  Pair pair;
  const wire::Qpn other = *pair.a.endpoint().create_rc({});
  write_with_a_gap(pair);
  const Counters own = pair.a.endpoint().counters(pair.a.qpn);
  for (const auto& [event, name] : kCounterNames) {
    INFO(name);
    if (event != TraceEvent::received) CHECK(own[event] == pair.a.counters()[event]);
    CHECK(pair.a.endpoint().counters(other)[event] == 0);
  }
  CHECK(own[TraceEvent::sent] == 5);
  CHECK(own[TraceEvent::payload_sent] == 5 * 1024);
  CHECK(own[TraceEvent::retransmitted] == 2);
  CHECK(own[TraceEvent::sequence_nak_received] == 1);
  CHECK(own[TraceEvent::delivered] == pair.a.counters()[TraceEvent::received]);
  CHECK(pair.b.endpoint().counters(pair.b.qpn)[TraceEvent::out_of_sequence] == 1);
  CHECK(pair.a.endpoint().counters(wire::Qpn{0x123456})[TraceEvent::sent] == 0);
}

TEST_CASE("A QP's counters end with it, the port's go on") {
  Pair pair;
  write_with_a_gap(pair);
  pair.a.endpoint().destroy(pair.a.qpn);
  CHECK(pair.a.endpoint().counters(pair.a.qpn)[TraceEvent::sent] == 0);
  CHECK(pair.a.counters()[TraceEvent::sent] == 5);
}

TEST_CASE("An observer is told what happens, in its order") {
  Pair pair;
  Recorder a;
  Recorder b;
  pair.a.endpoint().set_observer(&a);
  pair.b.endpoint().set_observer(&b);
  write_with_a_gap(pair);
  CHECK(a.values(TraceEvent::sent) == std::vector<uint32_t>{100, 101, 102, 101, 102});
  CHECK(a.values(TraceEvent::retransmitted) == std::vector<uint32_t>{101, 102});
  CHECK(a.values(TraceEvent::sequence_nak_received) == std::vector<uint32_t>{101});
  CHECK(b.values(TraceEvent::delivered) == std::vector<uint32_t>{100, 102, 101, 102});
  CHECK(b.values(TraceEvent::out_of_sequence) == std::vector<uint32_t>{102});
  CHECK(std::ranges::all_of(a.told, [&](const Told& one) {
    return one.qpn == (one.event == TraceEvent::received ? wire::Qpn{} : pair.a.qpn);
  }));

  pair.a.endpoint().set_observer(nullptr);
  const size_t told = a.told.size();
  pair.a.modify(QpState::error);
  CHECK(a.told.size() == told);
  pair.b.modify(QpState::error);
  CHECK(b.values(TraceEvent::state_changed) == std::vector{static_cast<uint32_t>(QpState::error)});
}

TEST_CASE("Counters as text: those that are not zero") {
  Counters counters;
  CHECK(sim::describe(counters).empty());
  counters[TraceEvent::sent] = 3;
  counters[TraceEvent::ack_timeout] = 1;
  CHECK(sim::describe(counters) == "tx_frames 3 ack_timeouts 1");
}

}  // namespace rocemu::transport_test
