// What the counters of mlx5's names are made from: completions with errors by side and cause,
// requests that were executed, multicast.
#include <catch2/catch.hpp>

#include "emulator/wire/build.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

// What a side has counted of completions with errors; each of the port's is the QP's, too.
struct Errors {
  uint64_t all = 0;
  uint64_t flushed = 0;
  bool operator==(const Errors&) const = default;
};

Errors of_requests(Host& host) {
  const Counters& counters = host.counters();
  return {counters[TraceEvent::request_failed], counters[TraceEvent::request_flushed]};
}

Errors of_receives(Host& host) {
  const Counters& counters = host.counters();
  return {counters[TraceEvent::receive_failed], counters[TraceEvent::receive_flushed]};
}

// One that fails, and one behind it.
void post_two(Pair& pair, const SendRequest& request) {
  for (const uint64_t id : {1, 2}) {
    SendRequest one = request;
    one.wr_id = id;
    pair.a.post(std::move(one));
  }
  pair.drive();
}

}  // namespace

TEST_CASE("A refused key is counted at both ends, and what is flushed behind it") {
  Pair pair;
  const Buffer far = pair.b.buffer(16, 0, kLocalWrite);
  pair.b.receive(1, {pair.b.buffer(8).sge()});
  post_two(pair, write(pair.a.buffer(16, 1), far));
  CHECK(pair.a.counters()[TraceEvent::remote_access_error] == 1);
  CHECK(of_requests(pair.a) == Errors{2, 1});
  CHECK(of_receives(pair.a) == Errors{});
  CHECK(pair.b.counters()[TraceEvent::remote_access_refused] == 1);
  CHECK(of_receives(pair.b) == Errors{1, 1});
  CHECK(of_requests(pair.b) == Errors{});
  CHECK(pair.b.counters()[TraceEvent::write_executed] == 0);
  CHECK(pair.a.endpoint().counters(pair.a.qpn)[TraceEvent::remote_access_error] == 1);
}

TEST_CASE("A receive that is too short is a length error there and an invalid request here") {
  Pair pair;
  pair.b.receive(1, {pair.b.buffer(8).sge()});
  post_two(pair, send(pair.a.buffer(16, 1)));
  CHECK(pair.a.counters()[TraceEvent::remote_invalid_request] == 1);
  CHECK(of_requests(pair.a) == Errors{2, 1});
  CHECK(pair.b.counters()[TraceEvent::receive_length_error] == 1);
  CHECK(pair.b.counters()[TraceEvent::remote_access_refused] == 0);
  CHECK(of_receives(pair.b) == Errors{1, 0});
}

TEST_CASE("Retries that are used up are counted once, not once a retry") {
  Pair pair;
  SECTION("for want of an answer") {
    pair.lose = [](const Sent&) { return true; };
    post_two(pair, write(pair.a.buffer(8, 1), pair.b.buffer(8)));
    CHECK(pair.a.counters()[TraceEvent::retries_exceeded] == 1);
    CHECK(pair.a.counters()[TraceEvent::rnr_retries_exceeded] == 0);
  }
  SECTION("for want of a receive") {
    post_two(pair, send(pair.a.buffer(8, 1)));
    CHECK(pair.a.counters()[TraceEvent::retries_exceeded] == 0);
    CHECK(pair.a.counters()[TraceEvent::rnr_retries_exceeded] == 1);
  }
  CHECK(of_requests(pair.a) == Errors{2, 1});
}

TEST_CASE("An unsignaled request counts when it is shown, which it is for its error alone") {
  Pair pair;
  pair.a.post(unsignaled(write(pair.a.buffer(8, 1), pair.b.buffer(8), 1)));
  pair.drive();
  CHECK(of_requests(pair.a) == Errors{});
  pair.a.post(unsignaled(write(pair.a.buffer(8, 1), pair.b.buffer(8, 0, kLocalWrite), 2)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::remote_access_error});
  CHECK(of_requests(pair.a) == Errors{1, 0});
}

TEST_CASE("Completions that become errors late count by what the program is shown") {
  Pair pair;
  const Buffer broken = pair.a.buffer(8);
  pair.a.node().memory().break_region(broken.key);
  pair.a.post(read(broken, pair.b.buffer(8, 1), 1));
  pair.a.post(read(pair.a.buffer(8), pair.b.buffer(8, 1), 2));
  // Fails for a cause of its own in the same burst, and is shown as flushed.
  pair.a.post(read(pair.a.buffer(8), pair.b.buffer(8, 1, kLocalWrite), 3));
  pair.drive();
  REQUIRE(statuses(pair.a.send_cq) == std::vector{WcStatus::local_protection_error,
                                                  WcStatus::flush_error, WcStatus::flush_error});
  CHECK(of_requests(pair.a) == Errors{3, 2});
  CHECK(pair.a.counters()[TraceEvent::remote_access_error] == 0);

  Completion shown;
  shown.qpn = pair.a.qpn;
  shown.opcode = WcOpcode::rdma_read;
  shown.status = WcStatus::flush_error;
  pair.a.endpoint().note_late_error(shown);
  shown.opcode = WcOpcode::receive;
  pair.a.endpoint().note_late_error(shown);
  shown.qpn = wire::Qpn{0x123456};
  pair.a.endpoint().note_late_error(shown);
  CHECK(of_requests(pair.a) == Errors{4, 3});
  CHECK(of_receives(pair.a) == Errors{1, 1});
}

TEST_CASE("Requests of a peer are counted once they are executed, each message once") {
  Pair pair;
  const Buffer near = pair.a.buffer(3000, 1);
  const Buffer far = pair.b.buffer(3000);
  pair.b.receive(1, {pair.b.buffer(3000).sge()});
  // The WRITE comes twice, for its ACK is lost: what is sent again is not another request.
  pair.lose = [lost = false](const Sent& frame) mutable {
    return !frame.from_a && !std::exchange(lost, true);
  };
  pair.a.post(write(near, far, 1));
  pair.drive();
  pair.a.post(read(near, far, 2));
  pair.a.post(fetch_add(pair.a.buffer(8), pair.b.buffer(8), 1, 3));
  pair.a.post(atomic_write(pair.a.buffer(8, 1), pair.b.buffer(8), 4));
  pair.a.post(send(near, 5));
  pair.drive();
  REQUIRE(statuses(pair.a.send_cq) == std::vector(5, WcStatus::success));
  const Counters counters = pair.b.endpoint().counters(pair.b.qpn);
  CHECK(counters[TraceEvent::duplicate_request] > 0);
  CHECK(counters[TraceEvent::write_executed] == 2);
  CHECK(counters[TraceEvent::read_executed] == 1);
  CHECK(counters[TraceEvent::atomic_executed] == 1);
}

TEST_CASE("WRITEs over UC are counted, too") {
  PairOptions options;
  options.a_service = options.b_service = Service::uc;
  Pair pair(options);
  pair.a.post(write(pair.a.buffer(3000, 1), pair.b.buffer(3000)));
  pair.drive();
  CHECK(pair.b.counters()[TraceEvent::write_executed] == 1);
}

TEST_CASE("Multicast is counted at both ends, a frame once however many QPs get it") {
  PairOptions options;
  options.a_service = options.b_service = Service::ud;
  Pair pair(options);
  SendRequest request = datagram(pair.a.buffer(8, 1), pair.b);
  pair.a.post(request);
  request.remote_qpn = wire::kMulticastQpn;
  pair.a.post(request);
  pair.drive();
  CHECK(pair.a.counters()[TraceEvent::sent] == 2);
  CHECK(pair.a.counters()[TraceEvent::multicast_sent] == 1);
  CHECK(pair.b.counters()[TraceEvent::multicast_received] == 1);
}

}  // namespace rocemu::transport_test
