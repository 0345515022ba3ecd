// Path migration between two QPs that know two paths: the first is that of all stories, on the
// other both hosts have IPv6 addresses.
#include <algorithm>
#include <catch2/catch.hpp>

#include "emulator/wire/build.h"
#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;

namespace {

wire::Gid second_gid(uint8_t host) {
  wire::Gid gid{};
  gid.bytes[0] = 0xfd;
  gid.bytes[15] = host;
  return gid;
}

constexpr uint8_t kAlternateTimeout = 10;  // 4.2 ms

std::shared_ptr<const AlternatePath> alternate_path(Host& own, Host& peer, uint8_t number,
                                                    uint8_t peer_number) {
  Path path;
  path.local_gid = second_gid(number);
  path.remote_gid = second_gid(peer_number);
  path.headers = wire::HeaderTemplate({peer.node().mac(), own.node().mac(), {}},
                                      {.source = path.local_gid, .destination = path.remote_gid},
                                      {.source_port = 0xc000});
  return std::make_shared<const AlternatePath>(path, kAlternateTimeout);
}

class MigratingPair : public Pair {
 public:
  explicit MigratingPair(const PairOptions& options = {}) : Pair(options) {
    a.attributes.alternate = alternate_path(a, b, 1, 2);
    b.attributes.alternate = alternate_path(b, a, 2, 1);
  }

  void ask(Host& host, MigrationRequest request) {
    host.attributes.migration = request;
    host.modify(QpState::ready_to_send);
    host.attributes.migration = MigrationRequest::none;
  }
  MigrationState state(Host& host) { return host.endpoint().migration_state(host.qpn); }
  bool both_are(MigrationState due) { return state(a) == due && state(b) == due; }

  // Both are armed when something has gone each way.
  void arm() {
    ask(a, MigrationRequest::rearm);
    ask(b, MigrationRequest::rearm);
    greet(a);
    greet(b);
    REQUIRE(both_are(MigrationState::armed));
    for (Host* host : {&a, &b}) {
      host->send_cq.completions.clear();
      host->receive_cq.completions.clear();
    }
    sent.clear();
  }
  void greet(Host& from) {
    peer_of(from).receive(90, {});
    from.post(send({}, 90));
    drive();
  }

  // Whether the QP of `a` knew a round trip before this: that says how much a first loss narrows
  // its window.
  bool has_measured() {
    const Buffer data = a.buffer(20000, 1);
    const Buffer room = b.buffer(20000);
    b.receive(91, {room.sge()});
    lose = [count = 0](const Sent& frame) mutable {
      return frame.from_a && frame.payload_bytes != 0 && ++count == 1;
    };
    a.post(send(data, 91));
    drive();
    REQUIRE(statuses(b.receive_cq).back() == WcStatus::success);
    return a.endpoint().wait_facts(fabric.now_ns(), a.qpn).window_packets > 64;
  }

  static bool on_second_path(const Sent& frame) { return frame.destination.bytes[0] == 0xfd; }
  void lose_first_path() {
    lose = [](const Sent& frame) { return !on_second_path(frame); };
  }

  // A packet without payload to `to`, a SEND ONLY if nothing else is said, from and to these
  // addresses.
  void inject_from(Host& to, const wire::Gid& source, const wire::Gid& destination, bool mig_req,
                   uint32_t psn, Operation operation = Operation::send_only,
                   const wire::ExtendedHeaders& ext = {}) {
    wire::Bth bth;
    bth.opcode = wire::bth_opcode(transport, operation);
    bth.psn = Psn(psn);
    bth.mig_req = mig_req;
    bth.destination_qp = to.qpn;
    to.node().receive(
        network::SharedFrame(wire::build_frame({}, {.source = source, .destination = destination},
                                               {.source_port = 0xc000}, bth, ext, {})));
    drive();
  }
};

PairOptions unreliable_migrating() {
  PairOptions options;
  options.a_service = options.b_service = Service::uc;
  return options;
}

}  // namespace

TEST_CASE("A QP that knows one path alone says that it is MIGRATED") {
  Pair pair;
  const Buffer data = pair.a.buffer(3000, 1);
  const Buffer far = pair.b.buffer(3000);
  pair.a.post(write(data, far));
  pair.a.post(read(data, far));
  pair.drive();
  CHECK(std::ranges::all_of(pair.sent, &Sent::mig_req));
  CHECK(pair.a.endpoint().migration_state(pair.a.qpn) == MigrationState::migrated);
}

TEST_CASE("Both ends are armed by each other's packets, and not before both have asked") {
  const Service service = GENERATE(Service::rc, Service::uc);
  PairOptions options;
  options.a_service = options.b_service = service;
  MigratingPair pair(options);
  pair.ask(pair.a, MigrationRequest::rearm);
  pair.greet(pair.a);
  pair.greet(pair.b);
  CHECK(pair.state(pair.a) == MigrationState::rearm);
  CHECK(pair.state(pair.b) == MigrationState::migrated);
  pair.sent.clear();
  pair.ask(pair.b, MigrationRequest::rearm);
  pair.greet(pair.a);
  pair.greet(pair.b);
  CHECK(pair.both_are(MigrationState::armed));
  CHECK(std::ranges::none_of(pair.sent, &Sent::mig_req));
  CHECK(pair.a.events().empty());
  CHECK(pair.b.events().empty());
}

TEST_CASE("REARM without an alternate path changes nothing") {
  MigratingPair pair;
  pair.a.attributes.alternate = nullptr;
  pair.ask(pair.a, MigrationRequest::rearm);
  CHECK(pair.state(pair.a) == MigrationState::migrated);
}

TEST_CASE("A connection whose path dies goes on over the other one, and nothing is lost") {
  MigratingPair pair;
  pair.arm();
  const Buffer data = pair.a.buffer(5000, 1);
  const Buffer room = pair.b.buffer(5000);
  const Buffer target = pair.b.buffer(5000);
  const Buffer source = pair.b.buffer(5000, 2);
  const Buffer answer = pair.a.buffer(5000);
  const Buffer cell = pair.b.buffer(8);
  const Buffer old = pair.a.buffer(8);
  pair.b.receive(1, {room.sge()});
  pair.a.post(write(data, target, 1));
  pair.a.post(read(answer, source, 2));
  pair.a.post(fetch_add(old, cell, 5, 3));
  pair.a.post(send(data, 4));
  // The path dies under way: what the peer has executed is not executed again.
  size_t frames = 0;
  const size_t survive = GENERATE(0, 3, 8, 12, 14);
  pair.lose = [&](const Sent& frame) {
    return !MigratingPair::on_second_path(frame) && frames++ >= survive;
  };
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(4, WcStatus::success));
  CHECK(statuses(pair.b.receive_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(room) == pair.a.bytes(data));
  CHECK(pair.b.bytes(target) == pair.a.bytes(data));
  CHECK(pair.a.bytes(answer) == pair.b.bytes(source));
  CHECK(pair.b.word(cell) == 5);
  CHECK(pair.both_are(MigrationState::migrated));
  CHECK(pair.a.events() == std::vector{QpEvent::path_migrated});
  CHECK(pair.b.events() == std::vector{QpEvent::path_migrated});
  for (const Sent& frame : pair.sent) CHECK(frame.mig_req == MigratingPair::on_second_path(frame));
}

TEST_CASE("A path that dies takes a connection along that is not armed") {
  MigratingPair pair;
  pair.ask(pair.a, MigrationRequest::rearm);
  pair.lose_first_path();
  pair.a.post(send({}));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::retry_exceeded_error});
  CHECK(pair.a.state() == QpState::error);
}

TEST_CASE("On the other path there are all retries again, with its own timeout, and no more") {
  MigratingPair pair;
  pair.arm();
  pair.lose = [](const Sent&) { return true; };
  pair.a.post(send({}));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::retry_exceeded_error});
  CHECK(pair.a.events() == std::vector{QpEvent::path_migrated});
  std::vector<Sent> first;
  std::vector<Sent> second;
  for (const Sent& frame : pair.sent_by(pair.a, Operation::send_only))
    (MigratingPair::on_second_path(frame) ? second : first).push_back(frame);
  // Once and three times more, and probes between.
  REQUIRE(first.size() >= 4);
  REQUIRE(second.size() >= 4);
  const auto timeouts = [](const std::vector<Sent>& frames) {
    return frames.back().now_ns - frames.front().now_ns;
  };
  CHECK(timeouts(first) >= 3 * (4096 << 8));
  CHECK(timeouts(first) < 4 * (4096 << 8));
  CHECK(timeouts(second) >= 3 * (uint64_t{4096} << kAlternateTimeout));
}

TEST_CASE("A program migrates its QP, and the peer follows") {
  MigratingPair pair;
  pair.arm();
  pair.ask(pair.a, MigrationRequest::migrate);
  CHECK(pair.state(pair.a) == MigrationState::migrated);
  CHECK(pair.state(pair.b) == MigrationState::armed);
  SECTION("when it hears of it") { pair.greet(pair.a); }
  SECTION("when it is answered over the other path") { pair.greet(pair.b); }
  CHECK(pair.both_are(MigrationState::migrated));
  CHECK(pair.a.events() == std::vector{QpEvent::path_migrated});
  CHECK(pair.b.events() == std::vector{QpEvent::path_migrated});
  CHECK(pair.a.counters()[TraceEvent::mismatched] == 0);
  CHECK(pair.b.counters()[TraceEvent::mismatched] == 0);

  pair.lose_first_path();
  pair.a.send_cq.completions.clear();
  pair.greet(pair.a);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
}

TEST_CASE("What is in flight when a program migrates its QP arrives once") {
  MigratingPair pair;
  pair.arm();
  const Buffer data = pair.a.buffer(20000, 1);
  const Buffer room = pair.b.buffer(20000);
  for (uint64_t i = 0; i < 5; ++i) {
    pair.b.receive(i, {room.sge()});
    pair.a.post(send(data, i));
  }
  while (pair.sent.size() < 40) pair.run_for(1);
  REQUIRE(pair.a.send_cq.completions.size() < 5);
  Host& host = GENERATE(true, false) ? pair.a : pair.b;
  pair.ask(host, MigrationRequest::migrate);
  if (GENERATE(true, false)) pair.lose_first_path();
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(5, WcStatus::success));
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{0, 1, 2, 3, 4});
  CHECK(pair.b.bytes(room) == pair.a.bytes(data));
  CHECK(pair.both_are(MigrationState::migrated));
}

TEST_CASE("An answer to what left over another path is no round trip of the new one") {
  MigratingPair pair;
  pair.arm();
  pair.b.receive(1, {});
  pair.lose = [](const Sent& frame) { return !frame.from_a; };
  pair.a.post(send({}, 1));
  while (pair.b.receive_cq.completions.empty()) pair.run_for(1);
  wire::ExtendedHeaders ack;
  ack.aeth = {.syndrome = 0x1f, .msn = 2};
  pair.inject_from(pair.a, second_gid(2), second_gid(1), true, 101, Operation::acknowledge, ack);
  REQUIRE(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  REQUIRE(pair.state(pair.a) == MigrationState::migrated);
  CHECK_FALSE(pair.has_measured());
}

TEST_CASE("A QP that gets another path measures anew") {
  MigratingPair pair;
  pair.greet(pair.a);
  const bool other = GENERATE(true, false);
  for (Host* host : {&pair.a, &pair.b}) {
    host->modify(QpState::send_queue_drain);
    if (other) host->attributes.path = host->attributes.alternate->path;
    host->modify(QpState::send_queue_drain);
    host->modify(QpState::ready_to_send);
  }
  CHECK(pair.has_measured() != other);
}

TEST_CASE("Over UC the peer follows the first packet, and is heard where it was until then") {
  MigratingPair pair(unreliable_migrating());
  pair.arm();
  pair.ask(pair.a, MigrationRequest::migrate);
  pair.greet(pair.b);
  CHECK(statuses(pair.a.receive_cq) == std::vector{WcStatus::success});
  CHECK(pair.state(pair.b) == MigrationState::armed);
  pair.greet(pair.a);
  CHECK(pair.both_are(MigrationState::migrated));
  pair.lose_first_path();
  pair.greet(pair.b);
  CHECK(statuses(pair.a.receive_cq) == std::vector(2, WcStatus::success));
}

TEST_CASE("A migration over a path that is not the alternate one is refused and told of once") {
  MigratingPair pair;
  pair.arm();
  const uint32_t psn = 101;  // the next of `a`
  for (int i = 0; i < 3; ++i) pair.inject_from(pair.b, second_gid(7), second_gid(2), true, psn);
  CHECK(pair.b.events() == std::vector{QpEvent::path_migration_error});
  CHECK(pair.b.counters()[TraceEvent::mismatched] == 3);
  CHECK(pair.state(pair.b) == MigrationState::armed);
  CHECK(pair.b.state() == QpState::ready_to_send);
  pair.inject_from(pair.b, second_gid(1), second_gid(2), false, psn);
  CHECK(pair.state(pair.b) == MigrationState::armed);
  pair.greet(pair.a);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
}

TEST_CASE("A QP that is not armed yet refuses to migrate") {
  MigratingPair pair;
  pair.ask(pair.b, MigrationRequest::rearm);
  pair.inject_from(pair.b, second_gid(1), second_gid(2), true, 100);
  CHECK(pair.b.events() == std::vector{QpEvent::path_migration_error});
  CHECK(pair.state(pair.b) == MigrationState::rearm);
  CHECK(pair.b.counters()[TraceEvent::mismatched] == 1);
}

TEST_CASE("A packet from before the peer was armed comes late, and is as good as any") {
  MigratingPair pair;
  pair.arm();
  pair.b.receive(1, {});
  const Path& path = pair.b.attributes.path;
  pair.inject_from(pair.b, path.remote_gid, path.local_gid, true, 101);
  CHECK(statuses(pair.b.receive_cq) == std::vector{WcStatus::success});
  CHECK(pair.state(pair.b) == MigrationState::armed);
  CHECK(pair.b.events().empty());
}

TEST_CASE("A QP that was reset has no alternate path") {
  MigratingPair pair;
  pair.arm();
  pair.a.modify(QpState::reset);
  CHECK(pair.state(pair.a) == MigrationState::migrated);
}
