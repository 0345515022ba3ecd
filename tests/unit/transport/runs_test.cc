// Packets of a message that travel as one (wire/run.h): what programs and counters see is the same
// as if each had come by itself.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

constexpr uint32_t kMtu = 1024;
constexpr uint32_t kMessageBytes = 20 * kMtu + 100;  // 21 packets

PairOptions with_runs(bool runs = true) {
  PairOptions options;
  options.node.runs = runs;
  return options;
}

bool is_run(const Sent& frame) { return frame.payload_bytes > kMtu; }

std::vector<Sent> runs_of(const Pair& pair, const Host& host) {
  std::vector<Sent> runs;
  for (const Sent& frame : pair.sent)
    if (frame.from_a == (&host == &pair.a) && is_run(frame)) runs.push_back(frame);
  return runs;
}

// Loses the first frame that is a run and begins with `psn`, or with any.
std::function<bool(const Sent&)> lose_run(std::optional<uint32_t> psn = {}) {
  return [psn, lost = false](const Sent& frame) mutable {
    return is_run(frame) && frame.psn == psn.value_or(frame.psn) && !std::exchange(lost, true);
  };
}

struct Ends {
  explicit Ends(Pair& pair)
      : near(pair.a.buffer(kMessageBytes, 1)),
        far(pair.b.buffer(kMessageBytes)),
        source(pair.b.buffer(kMessageBytes, 2)) {}
  Buffer near;
  Buffer far;
  Buffer source;
};

}  // namespace

TEST_CASE("A message leaves in runs, and is counted in packets") {
  const auto counters = [](bool runs, const std::function<SendRequest(Pair&)>& request) {
    Pair pair(with_runs(runs));
    pair.b.receive(7, {pair.b.buffer(kMessageBytes).sge()});
    pair.a.post(request(pair));
    pair.drive();
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
    CHECK((runs_of(pair, pair.a).size() + runs_of(pair, pair.b).size() > 0) == runs);
    return std::pair(pair.a.counters(), pair.b.counters());
  };
  const auto same = [&](const std::function<SendRequest(Pair&)>& request) {
    const auto with = counters(true, request);
    const auto without = counters(false, request);
    for (const auto& [event, name] : kCounterNames) {
      INFO(name);
      CHECK(with.first[event] == without.first[event]);
      CHECK(with.second[event] == without.second[event]);
    }
    CHECK(with.first[TraceEvent::sent] + with.second[TraceEvent::sent] >= 21);
  };
  same([](Pair& pair) { return send(pair.a.buffer(kMessageBytes, 1)); });
  same([](Pair& pair) {
    return write(pair.a.buffer(kMessageBytes, 1), pair.b.buffer(kMessageBytes));
  });
  same([](Pair& pair) {
    return read(pair.a.buffer(kMessageBytes), pair.b.buffer(kMessageBytes, 1));
  });
}

TEST_CASE("Runs bring what packets bring") {
  Pair pair(with_runs());
  Ends ends(pair);
  SECTION("WRITE with immediate") {
    pair.b.receive(7, {});
    pair.a.post(with_immediate(write(ends.near, ends.far), 0xabcd));
    pair.drive();
    CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
    REQUIRE(pair.b.receive_cq.completions.size() == 1);
    CHECK(pair.b.receive_cq.completions[0].immediate == 0xabcd);
    CHECK(pair.b.receive_cq.completions[0].byte_length == kMessageBytes);
  }
  SECTION("SEND to several elements") {
    pair.b.receive(7, {ends.far.sge(0, 1500), ends.far.sge(1500, kMessageBytes - 1500)});
    pair.a.post(send(ends.near));
    pair.drive();
    CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
  }
  SECTION("READ") {
    pair.a.post(read(ends.near, ends.source));
    pair.drive();
    CHECK(pair.a.bytes(ends.near) == pair.b.bytes(ends.source));
  }
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
}

TEST_CASE("A run that is lost is sent again") {
  Pair pair(with_runs());
  Ends ends(pair);
  SECTION("the first of a WRITE") {
    pair.lose = lose_run(100);
    pair.a.post(write(ends.near, ends.far));
    pair.drive();
    CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
    CHECK(pair.a.counters()[TraceEvent::retransmitted] == 21);
  }
  SECTION("the first of the answer to a READ") {
    pair.lose = lose_run();
    pair.a.post(read(ends.near, ends.source));
    pair.drive();
    CHECK(pair.a.bytes(ends.near) == pair.b.bytes(ends.source));
  }
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
}

TEST_CASE("A run that has come in part is taken from where it is new") {
  // A probe is one packet; what is sent after it begins where no run began before.
  Pair pair(with_runs());
  Ends ends(pair);
  pair.lose = [lost = 0](const Sent& frame) mutable {
    return frame.operation == Operation::acknowledge && lost++ < 2;
  };
  pair.a.post(write(ends.near, ends.far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
  CHECK(pair.b.counters()[TraceEvent::duplicate_request] ==
        pair.a.counters()[TraceEvent::retransmitted]);
  CHECK(pair.b.counters()[TraceEvent::write_executed] == 1);
}

TEST_CASE("A run waits for a receive as a packet does") {
  Pair pair(with_runs());
  Ends ends(pair);
  pair.a.post(send(ends.near));
  pair.run_for(10 * kUs);
  CHECK(pair.b.counters()[TraceEvent::rnr_nak_sent] == 1);
  pair.b.receive(7, {ends.far.sge()});
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
}

TEST_CASE("A run that may not be written ends the connection as its packets do") {
  const bool runs = GENERATE(true, false);
  Pair pair(with_runs(runs));
  const Buffer far = pair.b.buffer(kMessageBytes, 0, kLocalWrite);
  pair.a.post(write(pair.a.buffer(kMessageBytes, 1), far));
  expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
             QpEvent::access_error);
}

TEST_CASE("Who does not take runs gets packets") {
  PairOptions options = with_runs();
  options.b_node = sim::NodeOptions{};
  SECTION("since it repeats selectively") {
    options.b_node->limits.recovery = Recovery::selective_repeat;
  }
  SECTION("since it has another MTU") {}
  const bool other_mtu = options.b_node->limits.recovery == Recovery::go_back_n;
  Pair pair(options);
  Ends ends(pair);
  if (other_mtu) {
    pair.b.attributes.path_mtu_bytes = 512;
    pair.b.modify(QpState::ready_to_send);
    pair.a.post(write(ends.near, ends.far));
    expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
               QpEvent::request_error);
    return;
  }
  pair.a.post(write(ends.near, ends.far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
  CHECK(runs_of(pair, pair.a).size() > 0);
}

TEST_CASE("Who is observed sends no runs, and is told of each packet") {
  struct Counter : Observer {
    void on_event(wire::Qpn, TraceEvent event, uint32_t) noexcept override {
      delivered += event == TraceEvent::delivered;
    }
    unsigned delivered = 0;
  };
  Counter counter;
  Pair pair(with_runs());
  Ends ends(pair);
  SECTION("the receiver") {
    pair.b.endpoint().set_observer(&counter);
    pair.a.post(write(ends.near, ends.far));
    pair.drive();
    CHECK(runs_of(pair, pair.a).size() > 0);
    CHECK(counter.delivered == 21);
  }
  SECTION("the sender") {
    pair.a.endpoint().set_observer(&counter);
    pair.a.post(write(ends.near, ends.far));
    pair.drive();
    CHECK(runs_of(pair, pair.a).empty());
  }
  CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
}

TEST_CASE("What is spaced out leaves packet by packet") {
  PairOptions options = with_runs();
  const bool by_algorithm = GENERATE(true, false);
  if (by_algorithm) options.node.limits.congestion = *congestion::parse_settings("swift").settings;
  Pair pair(options);
  Ends ends(pair);
  if (!by_algorithm) pair.a.endpoint().limit_rate(pair.a.qpn, {.rate_kbps = 1'000'000});
  pair.a.post(write(ends.near, ends.far));
  pair.drive();
  CHECK(pair.b.bytes(ends.far) == pair.a.bytes(ends.near));
  CHECK(runs_of(pair, pair.a).empty());
}

namespace {

// Both ends' memory lends its payloads, which stand in no frame then.
struct LendingPair : Pair {
  LendingPair() : Pair(lending()), ends(*this) {
    a.node().memory().lend();
    b.node().memory().lend();
  }

  static PairOptions lending() {
    PairOptions options = with_runs();
    options.node.lends = true;
    return options;
  }

  Ends ends;
};

}  // namespace

TEST_CASE_METHOD(LendingPair, "A payload that is lent arrives") {
  SECTION("of a WRITE") {
    a.post(write(ends.near, ends.far));
    drive();
    CHECK(b.bytes(ends.far) == a.bytes(ends.near));
  }
  SECTION("of a SEND to several elements") {
    b.receive(7, {ends.far.sge(0, 1500), ends.far.sge(1500, kMessageBytes - 1500)});
    a.post(send(ends.near));
    drive();
    CHECK(b.bytes(ends.far) == a.bytes(ends.near));
  }
  SECTION("of the answer to a READ") {
    a.post(read(ends.near, ends.source));
    drive();
    CHECK(a.bytes(ends.near) == b.bytes(ends.source));
  }
  SECTION("of a message of several elements, which are gathered") {
    SendRequest request = send(ends.near);
    request.sges = {ends.near.sge(0, 1500), ends.near.sge(1500, kMessageBytes - 1500)};
    b.receive(7, {ends.far.sge()});
    a.post(request);
    drive();
    CHECK(b.bytes(ends.far) == a.bytes(ends.near));
  }
  SECTION("of runs that are lost") {
    lose = lose_run();
    a.post(write(ends.near, ends.far));
    drive();
    CHECK(b.bytes(ends.far) == a.bytes(ends.near));
  }
  CHECK(statuses(a.send_cq) == std::vector{WcStatus::success});
  CHECK(runs_of(*this, a).size() + runs_of(*this, b).size() > 0);
}

TEST_CASE_METHOD(LendingPair, "A payload is lent until its run is taken") {
  a.post(write(ends.near, ends.far));
  lose = [this](const Sent& frame) {
    if (is_run(frame)) a.node().memory().at(ends.near.address, 1)[0] = std::byte{0x77};
    return false;
  };
  drive();
  CHECK(b.bytes(ends.far)[0] == std::byte{0x77});
}

TEST_CASE_METHOD(LendingPair, "The answer to a READ is what was there when it was sent") {
  lose = [this](const Sent& frame) {
    if (is_run(frame)) b.node().memory().at(ends.source.address, 1)[0] = std::byte{0x77};
    return false;
  };
  const std::byte before = b.bytes(ends.source)[0];
  a.post(read(ends.near, ends.source));
  drive();
  CHECK(runs_of(*this, b).size() > 0);
  CHECK(a.bytes(ends.near)[0] == before);
}

TEST_CASE_METHOD(LendingPair, "The answer to a READ is put where it belongs by who sends it") {
  SECTION("of one element") {
    a.post(read(ends.near, ends.source));
    drive();
    CHECK(b.node().memory().landed() > 0);
  }
  SECTION("but not of several") {
    SendRequest request = read(ends.near, ends.source);
    request.sges = {ends.near.sge(0, 1500), ends.near.sge(1500, kMessageBytes - 1500)};
    a.post(request);
    drive();
    CHECK(b.node().memory().landed() == 0);
  }
  SECTION("but not when memory may be its program's again") {
    lose = [this](const Sent& frame) {
      if (frame.operation == Operation::read_request) fabric.take_lent();
      return false;
    };
    a.post(read(ends.near, ends.source));
    drive();
    CHECK(b.node().memory().landed() == 0);
  }
  SECTION("but not when it is asked for again") {
    lose = [lost = 0u](const Sent& frame) mutable {
      return frame.operation == Operation::read_request && lost++ == 0;
    };
    a.post(read(ends.near, ends.source));
    drive();
    CHECK(b.node().memory().landed() == 0);
  }
  SECTION("but not what is lost, for the second time") {
    lose = lose_run();
    a.post(read(ends.near, ends.source));
    drive();
    CHECK(b.node().memory().landed() == 1);
  }
  CHECK(statuses(a.send_cq) == std::vector{WcStatus::success});
  CHECK(a.bytes(ends.near) == b.bytes(ends.source));
}

TEST_CASE_METHOD(LendingPair, "A READ of who is not connected is answered in frames alone") {
  b.attributes.remote_qpn = wire::Qpn{0x777};
  b.modify(QpState::ready_to_send);
  a.post(read(ends.near, ends.source));
  run_for(20 * kUs);
  CHECK(runs_of(*this, b).size() > 0);
  CHECK(b.node().memory().landed() == 0);
}

TEST_CASE_METHOD(LendingPair, "A READ that has failed is not written any more") {
  constexpr uint32_t kBytes = 4 * wire::kMaxRunBytes;
  const Buffer into = a.buffer(kBytes);
  const Buffer from = b.buffer(kBytes, 2);
  unsigned runs = 0;
  lose = [&](const Sent& frame) {
    runs += is_run(frame);
    if (!is_run(frame) || runs != 1) return false;
    a.modify(QpState::error);
    fabric.take_lent();
    std::ranges::fill(a.node().memory().at(into.address, kBytes), std::byte{0x77});
    return false;
  };
  a.post(read(into, from));
  run_for(1000 * kUs);
  CHECK(runs > 1);
  CHECK(b.node().memory().landed() == 1);
  CHECK(a.bytes(into) == filled(kBytes));
}

TEST_CASE_METHOD(LendingPair, "A run that is taken apart has its payload copied before") {
  // What is sent after a probe begins where no run began before.
  lose = [lost = 0](const Sent& frame) mutable {
    return frame.operation == Operation::acknowledge && lost++ < 2;
  };
  a.post(write(ends.near, ends.far));
  drive();
  CHECK(statuses(a.send_cq) == std::vector{WcStatus::success});
  CHECK(b.bytes(ends.far) == a.bytes(ends.near));
  CHECK(b.counters()[TraceEvent::duplicate_request] == a.counters()[TraceEvent::retransmitted]);
  CHECK(b.node().memory().taken_lent() > 0);
}

TEST_CASE_METHOD(LendingPair, "A run whose payload has gone is a frame that is lost") {
  b.node().memory().lose_lent();
  a.post(write(ends.near, ends.far));
  run_for(20 * kUs);
  CHECK(runs_of(*this, a).size() > 0);
  CHECK(b.counters()[TraceEvent::write_executed] == 0);
  CHECK(b.state() == QpState::ready_to_send);
  CHECK(b.bytes(ends.far) == std::vector<std::byte>(kMessageBytes));
}

TEST_CASE_METHOD(LendingPair, "What an error gives back is told before programs hear of it") {
  CHECK_FALSE(a.endpoint().take_given_back());
  a.post(write(ends.near, ends.far));
  drive();
  CHECK_FALSE(a.endpoint().take_given_back());
  lose = [](const Sent&) { return true; };
  a.post(write(ends.near, ends.far));
  drive();
  CHECK(statuses(a.send_cq).back() == WcStatus::retry_exceeded_error);
  CHECK(a.endpoint().take_given_back());
  CHECK_FALSE(a.endpoint().take_given_back());
}

TEST_CASE_METHOD(LendingPair, "What goes to a group goes in packets") {
  a.attributes.path.remote_gid = kGroupGid;
  a.modify(QpState::ready_to_send);
  a.post(write(ends.near, ends.far));
  run_for(20 * kUs);
  CHECK(sent.size() > 1);
  CHECK(runs_of(*this, a).empty());
}

TEST_CASE_METHOD(LendingPair, "Memory that cannot be read lends nothing, and fails at its owner") {
  a.node().memory().break_region(ends.near.key);
  a.post(write(ends.near, ends.far));
  drive();
  CHECK(statuses(a.send_cq) == std::vector{WcStatus::local_protection_error});
  CHECK(b.state() == QpState::ready_to_send);
}

}  // namespace rocemu::transport_test
