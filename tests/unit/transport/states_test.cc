// QP states: SQD, ERROR by the program, RESET and reuse, destruction, and QP numbers.
#include <catch2/catch.hpp>

#include "base/time.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

TEST_CASE("A send queue drains: what was begun is finished, what was not waits") {
  Pair pair;
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8);
  pair.lose = [](const Sent& frame) { return !frame.from_a; };
  pair.a.post(write(near, far, 1));
  pair.run_for(10 * kUs);
  pair.a.attributes.notify_drained = true;
  pair.a.modify(QpState::send_queue_drain);
  pair.a.post(write(near, far, 2));
  pair.run_for(100 * kUs);
  CHECK(pair.a.endpoint().draining(pair.a.qpn));
  CHECK_FALSE(pair.a.had_event(QpEvent::send_queue_drained));
  pair.lose = nullptr;
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1});
  CHECK_FALSE(pair.a.endpoint().draining(pair.a.qpn));
  CHECK(pair.a.had_event(QpEvent::send_queue_drained));
  pair.a.modify(QpState::ready_to_send);
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
}

TEST_CASE("A drained queue says so once") {
  Pair pair;
  pair.a.attributes.notify_drained = true;
  pair.a.modify(QpState::send_queue_drain);
  pair.drive();
  for (uint64_t id : {1, 2}) pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8), id));
  pair.drive();
  CHECK(pair.a.node().events.size() == 1);
}

TEST_CASE("To ERROR by the program: flushed without an event") {
  Pair pair;
  pair.lose = [](const Sent&) { return true; };
  pair.a.receive(5, {});
  for (uint64_t id : {1, 2}) pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8), id));
  pair.run_for(10 * kUs);
  pair.a.modify(QpState::error);
  CHECK(statuses(pair.a.send_cq) == std::vector<WcStatus>(2, WcStatus::flush_error));
  CHECK(statuses(pair.a.receive_cq) == std::vector{WcStatus::flush_error});
  pair.drive();
  CHECK(pair.a.node().events.empty());
  CHECK(pair.a.send_queue.released() == 2);
}

TEST_CASE("A long queue is flushed in pieces, so that others have their turns between") {
  Pair pair;
  constexpr size_t kReceives = 2000;
  for (uint64_t id = 0; id < kReceives; ++id) pair.a.receive(id, {});
  pair.a.modify(QpState::error);
  const size_t at_once = pair.a.receive_cq.completions.size();
  CHECK(at_once > 0);
  CHECK(at_once < kReceives);
  pair.drive();
  CHECK(statuses(pair.a.receive_cq) == std::vector<WcStatus>(kReceives, WcStatus::flush_error));
}

TEST_CASE("Programs that ring for QPs in error more than a turn has time for wait for later ones") {
  Pair pair;
  pair.a.modify(QpState::error);
  constexpr size_t kReceives = 50;
  for (uint64_t id = 0; id < kReceives; ++id) {
    pair.a.receive(id, {});
    pair.a.endpoint().on_doorbell(pair.a.qpn);
  }
  const size_t at_once = pair.a.receive_cq.completions.size();
  CHECK(at_once > 0);
  CHECK(at_once < kReceives);
  pair.drive();
  CHECK(statuses(pair.a.receive_cq) == std::vector<WcStatus>(kReceives, WcStatus::flush_error));
}

TEST_CASE("A QP that is reset or destroyed is flushed no further") {
  Pair pair;
  for (uint64_t id = 0; id < 2000; ++id) pair.a.receive(id, {});
  pair.a.modify(QpState::error);
  SECTION("reset") { pair.a.modify(QpState::reset); }
  SECTION("destroyed") { pair.a.endpoint().destroy(pair.a.qpn); }
  const size_t before = pair.a.receive_cq.completions.size();
  pair.drive();
  CHECK(pair.a.receive_cq.completions.size() == before);
}

TEST_CASE("A QP that was reset starts anew") {
  Pair pair;
  const Buffer near = pair.a.buffer(3000, 1);
  const Buffer far = pair.b.buffer(3000);
  pair.lose = [](const Sent& frame) { return frame.psn == 102; };
  pair.b.receive(1, {far.sge()});
  pair.a.post(send(near, 1));
  pair.run_for(50 * kUs);
  CHECK(pair.a.send_cq.completions.empty());
  pair.lose = nullptr;
  // Both sides leave in the middle of a message, with a receive under way.
  pair.a.attributes.send_psn = pair.b.attributes.receive_psn = Psn(7000);
  pair.a.send_queue.release(1);
  for (Host* host : {&pair.a, &pair.b}) {
    host->modify(QpState::reset);
    host->modify(QpState::init);
    host->modify(QpState::ready_to_receive);
    host->modify(QpState::ready_to_send);
  }
  pair.b.receive(2, {far.sge()});
  pair.a.post(send(near, 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{2});
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{2});
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 0);
}

TEST_CASE("A QP in RTR answers and tells of the first packet") {
  Pair pair;
  pair.b.modify(QpState::reset);
  pair.b.modify(QpState::init);
  pair.b.modify(QpState::ready_to_receive);
  pair.b.post(write(pair.b.buffer(8, 1), pair.a.buffer(8), 9));
  for (uint64_t id : {1, 2}) pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8), id));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  REQUIRE(pair.b.node().events.size() == 1);
  CHECK(pair.b.node().events[0].event == QpEvent::communication_established);
  // Expect: what was posted early is sent once the QP may.
  CHECK(pair.b.send_cq.completions.empty());
  pair.b.modify(QpState::ready_to_send);
  pair.drive();
  CHECK(wr_ids(pair.b.send_cq) == std::vector<uint64_t>{9});
}

TEST_CASE("A destroyed QP leaves no timer, no completion, and its number rests") {
  Pair pair;
  pair.lose = [](const Sent&) { return true; };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.run_for(10 * kUs);
  pair.a.endpoint().destroy(pair.a.qpn);
  pair.drive();
  CHECK(pair.a.send_cq.completions.empty());
  CHECK(pair.count(pair.a, Operation::write_only) == 1);
  CHECK(pair.a.endpoint().qp_count() == 0);
  CHECK(pair.a.endpoint().next_deadline() == kNever);
}

TEST_CASE("The QP table is bounded, and numbers differ from those before them") {
  sim::Fabric fabric{1};
  sim::NodeOptions options;
  options.max_qps = 3;
  Endpoint& endpoint = fabric.add_node<sim::EndpointNode>(options).endpoint();
  std::vector<wire::Qpn> seen;
  std::vector<wire::Qpn> alive;
  for (int i = 0; i < 50; ++i) {
    if (alive.size() == 3) {
      CHECK_FALSE(endpoint.create_rc({}));
      endpoint.destroy(alive.front());
      alive.erase(alive.begin());
    }
    const auto qpn = endpoint.create_rc({});
    REQUIRE(qpn);
    CHECK(std::ranges::find(seen, *qpn) == seen.end());
    CHECK(qpn->value > 1);
    CHECK(qpn->value <= 0xffffff);
    seen.push_back(*qpn);
    alive.push_back(*qpn);
  }
}

}  // namespace rocemu::transport_test
