// Memory that passes the check and then cannot be moved, as when a program unmaps it: fetches fail
// in Burst, scatters in DeferredCompletions. Completions are only pushed for data that is there.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

// One request between others: the ones before succeed, the ones behind are flushed.
void post_between(Pair& pair, SendRequest request) {
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8);
  request.wr_id = 2;
  pair.a.post(write(near, far, 1));
  pair.a.post(std::move(request));
  pair.a.post(write(near, far, 3));
}

std::vector<WcStatus> between(WcStatus status) {
  return {WcStatus::success, status, WcStatus::flush_error};
}

}  // namespace

TEST_CASE("A source that cannot be read fails its request in its turn") {
  Pair pair;
  const Buffer near = pair.a.buffer(3000, 1);
  pair.a.node().memory().break_region(near.key);
  pair.b.receive(1, {pair.b.buffer(3000).sge()});
  post_between(pair, GENERATE(true, false) ? send(near) : write(near, pair.b.buffer(3000)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == between(WcStatus::local_protection_error));
  // Expect: no frame of it, nor of what is behind it, has left.
  CHECK(pair.sent_by(pair.a, Operation::write_only).size() == 1);
  CHECK(pair.count(pair.a, Operation::send_first) + pair.count(pair.a, Operation::write_first) ==
        0);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("A READ whose memory cannot be read is refused at once") {
  Pair pair;
  const Buffer far = pair.b.buffer(3000, 1);
  pair.b.node().memory().break_region(far.key);
  post_between(pair, read(pair.a.buffer(3000), far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == between(WcStatus::remote_access_error));
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.b.had_event(QpEvent::access_error));
  CHECK(pair.b.state() == QpState::error);
}

TEST_CASE("A region that goes while its READ is answered ends the READ at that packet") {
  PairOptions options;
  options.mtu_bytes = 256;
  options.node.tx_burst = 2;
  Pair pair(options);
  const Buffer far = pair.b.buffer(10 * 256, 1);
  pair.a.post(read(pair.a.buffer(10 * 256), far));
  // After the second response packet.
  pair.lose = [&](const Sent& frame) {
    if (!frame.from_a && frame.psn == 101) pair.b.node().memory().deregister(far.key);
    return false;
  };
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::remote_access_error});
  const Sent nak = pair.sent_by(pair.b, Operation::acknowledge).at(0);
  CHECK(nak.ext.aeth.syndrome == wire::syndrome::kNakRemoteAccess);
  CHECK(nak.psn == 102);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

TEST_CASE("A WRITE that cannot be written is refused") {
  Pair pair;
  const Buffer far = pair.b.buffer(3000);
  pair.b.node().memory().break_region(far.key);
  pair.b.receive(1, {});
  const bool immediate = GENERATE(true, false);
  SendRequest request = write(pair.a.buffer(3000, 1), far);
  post_between(pair, immediate ? with_immediate(request, 5) : request);
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == between(WcStatus::remote_access_error));
  CHECK(statuses(pair.b.receive_cq) == std::vector{WcStatus::flush_error});
  CHECK(pair.b.had_event(QpEvent::access_error));
}

TEST_CASE("A receive that cannot be written fails with its message") {
  Pair pair;
  const Buffer inbox = pair.b.buffer(3000);
  pair.b.node().memory().break_region(inbox.key);
  pair.b.receive(1, {inbox.sge()});
  pair.b.receive(2, {pair.b.buffer(8).sge()});
  post_between(pair, send(pair.a.buffer(3000, 1)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == between(WcStatus::remote_operation_error));
  CHECK(statuses(pair.b.receive_cq) ==
        std::vector{WcStatus::local_protection_error, WcStatus::flush_error});
  CHECK(pair.b.events().empty());
}

TEST_CASE(
    "Of two messages in one burst the one that cannot be written fails, the next is flushed") {
  Pair pair;
  const Buffer inbox = pair.b.buffer(8);
  const Buffer broken = pair.b.buffer(8);
  pair.b.node().memory().break_region(broken.key);
  pair.b.receive(1, {inbox.sge()});
  pair.b.receive(2, {broken.sge()});
  pair.b.receive(3, {inbox.sge()});
  for (uint64_t id : {1, 2, 3}) pair.a.post(send(pair.a.buffer(8, 1), id));
  pair.drive();
  CHECK(statuses(pair.b.receive_cq) ==
        std::vector{WcStatus::success, WcStatus::local_protection_error, WcStatus::flush_error});
  CHECK(statuses(pair.a.send_cq) == between(WcStatus::remote_operation_error));
}

TEST_CASE("An answer that cannot be written fails the request that asked for it") {
  Pair pair;
  const bool atomic = GENERATE(true, false);
  const bool signaled = GENERATE(true, false);
  const Buffer into = pair.a.buffer(8);
  pair.a.node().memory().break_region(into.key);
  const Buffer far = pair.b.buffer(8, 1);
  SendRequest request = atomic ? fetch_add(into, far, 1) : read(into, far);
  request.signaled = signaled;
  SECTION("between others") {
    post_between(pair, std::move(request));
    pair.drive();
    CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2, 3});
    CHECK(statuses(pair.a.send_cq) == between(WcStatus::local_protection_error));
  }
  SECTION("alone") {
    pair.a.post(std::move(request));
    pair.drive();
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_protection_error});
  }
  CHECK(pair.a.state() == QpState::error);
}

TEST_CASE("An atomic's value whose second half may not be written fails whole") {
  Pair pair;
  const Buffer into = pair.a.buffer(8);
  const Buffer rest = pair.a.buffer(8);
  SendRequest request = fetch_add(into, pair.b.buffer(8, 1), 1);
  request.sges = {into.sge(0, 4), rest.sge(0, 4)};
  pair.lose = [&](const Sent& frame) {
    if (frame.operation == Operation::atomic_acknowledge)
      pair.a.node().memory().deregister(rest.key);
    return false;
  };
  pair.a.post(std::move(request));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_protection_error});
}

TEST_CASE("An atomic on memory that is gone is refused") {
  Pair pair;
  const Buffer cell = pair.b.buffer(8);
  pair.b.node().memory().break_region(cell.key);
  post_between(pair, compare_swap(pair.a.buffer(8), cell, 0, 1));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == between(WcStatus::remote_access_error));
}

TEST_CASE("Completions that become errors when their data cannot be moved are counted as such") {
  Pair pair;
  const Buffer broken = pair.a.buffer(8);
  pair.a.node().memory().break_region(broken.key);
  pair.a.post(read(broken, pair.b.buffer(8, 1), 1));
  pair.a.post(read(pair.a.buffer(8), pair.b.buffer(8, 1), 2));
  pair.drive();
  REQUIRE(statuses(pair.a.send_cq) ==
          std::vector{WcStatus::local_protection_error, WcStatus::flush_error});
  CHECK(pair.a.counters()[TraceEvent::completion_with_error] == 2);
}

}  // namespace rocemu::transport_test
