// Why a QP waits: the rules by themselves, and what real QPs say in each of these situations.
#include "emulator/transport/qp/wait_reason.h"

#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

using Next = WaitFacts::Next;

WaitFacts sending() { return {.may_take = true, .may_send = true, .next = Next::packet}; }

struct Waiting {
  explicit Waiting(const PairOptions& options = {}) : pair(options) {}

  WaitFacts facts(Host& host) { return host.endpoint().wait_facts(pair.fabric.now_ns(), host.qpn); }
  WaitReason reason(Host& host) { return find_wait_reason(facts(host)); }
  // Nothing of the peer's arrives any more.
  void cut() {
    pair.lose = [](const Sent& frame) { return !frame.from_a; };
  }

  Pair pair;
};

}  // namespace

TEST_CASE("A QP without requests waits for nothing") {
  CHECK(find_wait_reason({}) == WaitReason::none);
  CHECK(find_wait_reason({.may_take = true, .may_send = true}) == WaitReason::none);
}

TEST_CASE("What is posted in a state that takes nothing waits for the state") {
  CHECK(find_wait_reason({.next = Next::unknown, .posted = 1}) == WaitReason::state);
  CHECK(find_wait_reason({.next = Next::packet}) == WaitReason::state);
  // SQD: those that were taken go on.
  CHECK(find_wait_reason({.may_send = true, .next = Next::unknown, .requests = 1}) ==
        WaitReason::answer);
  CHECK(find_wait_reason({.may_send = true, .next = Next::unknown}) == WaitReason::state);
}

TEST_CASE("What keeps the next packet counts in the requester's order") {
  WaitFacts facts = sending();
  CHECK(find_wait_reason(facts) == WaitReason::turn);
  facts.rate_limit_left_ns = 1;
  CHECK(find_wait_reason(facts) == WaitReason::rate_limit);
  facts.pace_left_ns = 1;
  CHECK(find_wait_reason(facts) == WaitReason::pace);
  facts.reads_are_full = true;
  CHECK(find_wait_reason(facts) == WaitReason::reads);
  facts.fenced = true;
  CHECK(find_wait_reason(facts) == WaitReason::fence);
  facts.window_is_full = true;
  CHECK(find_wait_reason(facts) == WaitReason::window);
  facts.rnr_left_ns = 1;
  CHECK(find_wait_reason(facts) == WaitReason::rnr);
}

TEST_CASE("A request that is none for the wire waits for those before it") {
  WaitFacts facts = sending();
  facts.next = Next::not_sent;
  facts.requests = 2;
  CHECK(find_wait_reason(facts) == WaitReason::earlier);
  facts.requests = 1;
  CHECK(find_wait_reason(facts) == WaitReason::turn);
}

TEST_CASE("With nothing to send the peer is waited for, and then the program") {
  WaitFacts facts = sending();
  facts.next = Next::none;
  facts.requests = 3;
  facts.unread_completions = 5;
  CHECK(find_wait_reason(facts) == WaitReason::answer);
  facts.retries = 1;
  CHECK(find_wait_reason(facts) == WaitReason::retransmission);
  // What is to be sent again may be held back by its pace, or fill the window.
  facts.next = Next::packet;
  facts.pace_left_ns = 1;
  facts.window_is_full = true;
  CHECK(find_wait_reason(facts) == WaitReason::retransmission);
  facts.next = Next::none;
  facts.pace_left_ns = 0;
  facts.requests = 0;
  CHECK(find_wait_reason(facts) == WaitReason::polls);
  facts.told_not_ready = true;
  CHECK(find_wait_reason(facts) == WaitReason::polls);
  facts.unread_completions = 0;
  CHECK(find_wait_reason(facts) == WaitReason::receives);
}

TEST_CASE("Answers to READs are held back by a rate, too") {
  WaitFacts facts = sending();
  facts.next = Next::none;
  facts.queued_responses = 1;
  CHECK(find_wait_reason(facts) == WaitReason::turn);
  facts.pace_left_ns = 1;
  CHECK(find_wait_reason(facts) == WaitReason::pace);
}

TEST_CASE("Each reason has a name of its own") {
  CHECK(kWaitReasonNames[static_cast<size_t>(WaitReason::none)] == "none");
  CHECK(kWaitReasonNames[static_cast<size_t>(WaitReason::rate_limit)] == "rate_limit");
  CHECK(kWaitReasonNames[static_cast<size_t>(WaitReason::retransmission)] == "retransmission");
  CHECK(kWaitReasonNames[static_cast<size_t>(WaitReason::polls)] == "polls");
}

TEST_CASE("A SEND without a receive: one end waits for the RNR timer, the other for receives") {
  Waiting stage;
  const Buffer from = stage.pair.a.buffer(100, 1);
  stage.pair.a.post(send(from));
  stage.pair.run_for(30 * kUs);
  CHECK(stage.reason(stage.pair.a) == WaitReason::rnr);
  CHECK(stage.facts(stage.pair.a).rnr_left_ns > 0);
  CHECK(stage.facts(stage.pair.a).rnr_left_ns <= 60 * kUs);
  CHECK(stage.reason(stage.pair.b) == WaitReason::receives);
  stage.pair.b.receive(1, {stage.pair.b.buffer(100).sge()});
  CHECK(stage.pair.b.receive_queue.waiting() == 1);
  stage.pair.drive();
  CHECK(stage.reason(stage.pair.a) == WaitReason::none);
  CHECK(stage.reason(stage.pair.b) == WaitReason::none);
  CHECK(stage.facts(stage.pair.a).completed == 1);
  CHECK(stage.facts(stage.pair.b).answered_messages == 1);
}

TEST_CASE("A WRITE without an answer: first the answer is waited for, then it is sent again") {
  Waiting stage;
  const Buffer from = stage.pair.a.buffer(100, 1), to = stage.pair.b.buffer(100);
  stage.cut();
  stage.pair.a.post(write(from, to));
  stage.pair.run_for(100 * kUs);
  CHECK(stage.reason(stage.pair.a) == WaitReason::answer);
  const TimeNs age_ns = stage.facts(stage.pair.a).oldest_age_ns;
  CHECK(age_ns > 50 * kUs);
  CHECK(age_ns <= 100 * kUs);
  stage.pair.run_for(2 * kMs);
  CHECK(stage.reason(stage.pair.a) == WaitReason::retransmission);
  CHECK(stage.facts(stage.pair.a).retries >= 1);
  CHECK(stage.facts(stage.pair.a).oldest_age_ns == age_ns + 2 * kMs);
}

TEST_CASE("More than the window waits for it") {
  PairOptions options;
  options.node.limits.window_packets = 4;
  Waiting stage(options);
  const Buffer from = stage.pair.a.buffer(16 * 1024, 1), to = stage.pair.b.buffer(16 * 1024);
  stage.cut();
  stage.pair.a.post(write(from, to));
  stage.pair.a.post(write(from, to));
  stage.pair.run_for(100 * kUs);
  CHECK(stage.reason(stage.pair.a) == WaitReason::window);
  CHECK(stage.facts(stage.pair.a).window_packets <= 4);
  CHECK(stage.facts(stage.pair.a).requests == 1);
  CHECK(stage.facts(stage.pair.a).posted == 1);
}

TEST_CASE("A fence, and READs beyond max_rd_atomic, wait for READs before them") {
  PairOptions options;
  options.max_rd_atomic = 1;
  Waiting stage(options);
  const Buffer into = stage.pair.a.buffer(64), from = stage.pair.b.buffer(64, 3);
  stage.cut();
  stage.pair.a.post(read(into, from));
  SECTION("a READ") {
    stage.pair.a.post(read(into, from));
    stage.pair.run_for(100 * kUs);
    CHECK(stage.reason(stage.pair.a) == WaitReason::reads);
  }
  SECTION("a fenced WRITE") {
    stage.pair.a.post(fenced(write(into, from)));
    stage.pair.run_for(100 * kUs);
    CHECK(stage.reason(stage.pair.a) == WaitReason::fence);
  }
}

TEST_CASE("What the program's rate holds back waits for it") {
  Waiting stage;
  const Buffer from = stage.pair.a.buffer(16 * 1024, 1), to = stage.pair.b.buffer(16 * 1024);
  stage.pair.a.endpoint().limit_rate(stage.pair.a.qpn,
                                     {.rate_kbps = 1000, .max_burst_bytes = 2048});
  stage.pair.a.post(write(from, to));
  stage.pair.run_for(1 * kMs);
  CHECK(stage.reason(stage.pair.a) == WaitReason::rate_limit);
  CHECK(stage.facts(stage.pair.a).rate_limit_left_ns > 0);
}

TEST_CASE("A datagram that its rate holds back waits for that as well") {
  PairOptions options;
  options.a_service = options.b_service = Service::ud;
  Waiting stage(options);
  const Buffer from = stage.pair.a.buffer(1000, 1);
  stage.pair.a.endpoint().limit_rate(stage.pair.a.qpn,
                                     {.rate_kbps = 1000, .max_burst_bytes = 1024});
  for (int i = 0; i < 4; ++i) stage.pair.a.post(datagram(from, stage.pair.b));
  stage.pair.run_for(1 * kMs);
  CHECK(stage.reason(stage.pair.a) == WaitReason::rate_limit);
  CHECK(stage.facts(stage.pair.a).completed >= 1);
  CHECK(stage.facts(stage.pair.a).posted >= 1);
}

TEST_CASE("A QP that is not there has no facts") {
  Waiting stage;
  CHECK(find_wait_reason(stage.pair.a.endpoint().wait_facts(0, wire::Qpn{0xfffff})) ==
        WaitReason::none);
}

}  // namespace rocemu::transport_test
