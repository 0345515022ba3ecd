// Selective repeat: agreed on by both ends, and only what was lost is sent again.
#include "emulator/transport/requester/selective_repeat.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "emulator/transport/requester/go_back_n.h"
#include "emulator/wire/selective.h"
#include "tests/unit/transport/pair.h"
#include "tests/unit/transport/requester_stage.h"

namespace rocemu::transport_test {

namespace {

PairOptions selective() {
  PairOptions options;
  options.mtu_bytes = 256;
  options.node.limits.recovery = Recovery::selective_repeat;
  return options;
}

Recovery recovery_of(Host& host) { return host.endpoint().load(host.qpn).recovery; }

// One message of one packet, by which both ends know of each other.
void agree(Pair& pair) {
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  REQUIRE(recovery_of(pair.a) == Recovery::selective_repeat);
  pair.a.send_cq.completions.clear();
  pair.sent.clear();
}

// Loses the next frame of one side with each of these PSNs.
void lose_once(Pair& pair, bool from_a, std::set<uint32_t> psns) {
  pair.lose = [from_a, psns](const Sent& frame) mutable {
    return frame.from_a == from_a && psns.erase(frame.psn) > 0;
  };
}

std::vector<uint32_t> psns_by(const Pair& pair, bool from_a) {
  std::vector<uint32_t> result;
  for (const Sent& frame : pair.sent)
    if (frame.from_a == from_a) result.push_back(frame.psn);
  return result;
}

uint64_t retransmitted(Pair& pair) { return pair.a.counters()[TraceEvent::retransmitted]; }

// A packet as a peer with selective repeat sends it. `placed`: what stands before the payload.
wire::Bth bth_of(Operation operation, uint32_t psn, bool placed = false) {
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(wire::Transport::rc, operation);
  bth.psn = Psn(psn);
  bth.reserved7 = wire::selective::kUnderstood;
  if (placed) bth.reserved7 |= wire::selective::kPlaced;
  return bth;
}

// A SEND of 100 bytes that says which receive it is for.
std::vector<std::byte> send_for(Pair& pair, Host& to, uint32_t psn, uint32_t receive) {
  std::vector<std::byte> payload(wire::selective::kReceivePlaceBytes + 100);
  const wire::Bth bth = bth_of(Operation::send_only, psn, true);
  wire::ExtendedHeaders ext;
  ext.receive_place = {receive, 0};
  wire::selective::store_place(payload.data(), bth.opcode, ext);
  return pair.frame_for(to, bth, {}, payload);
}

// A READ request to `b`, as a peer with selective repeat sends it.
void ask_for(Pair& pair, uint32_t psn, const Buffer& far, uint32_t offset, uint32_t bytes) {
  wire::ExtendedHeaders ext;
  ext.reth = {far.address + offset, wire::RKey{far.key}, bytes};
  pair.b.node().receive(
      network::SharedFrame(pair.frame_for(pair.b, bth_of(Operation::read_request, psn), ext, {})));
}

size_t receives_left(Host& host) {
  size_t left = 0;
  for (ReceiveWork work; host.receive_queue.pop(work);) ++left;
  return left;
}

}  // namespace

TEST_CASE("Go-back-N says nothing in bits that are reserved") {
  Pair pair;
  pair.a.post(write(pair.a.buffer(5000, 1), pair.b.buffer(5000)));
  pair.drive();
  for (const Sent& frame : pair.sent) CHECK(frame.reserved7 == 0);
}

TEST_CASE("A peer without selective repeat gets go-back-N and the standard's frames") {
  PairOptions options = selective();
  options.b_node = sim::NodeOptions{};
  Pair pair(options);
  const Buffer near = pair.a.buffer(10 * 256, 1);
  const Buffer far = pair.b.buffer(10 * 256);
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  lose_once(pair, true, {104});
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(recovery_of(pair.a) == Recovery::go_back_n);
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(retransmitted(pair) == 7);
  for (const Sent& frame : pair.sent) {
    CHECK(frame.reserved7 == (frame.from_a ? wire::selective::kUnderstood : 0));
    CHECK(frame.payload_bytes <= options.mtu_bytes);
  }
}

TEST_CASE("Of a WRITE the lost packets alone are sent again") {
  Pair pair(selective());
  agree(pair);
  const Buffer near = pair.a.buffer(10 * 256, 1);
  const Buffer far = pair.b.buffer(10 * 256);
  lose_once(pair, true, {103, 105, 106});
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(psns_by(pair, true) ==
        std::vector<uint32_t>{101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 103, 105, 106});
  CHECK(pair.b.counters()[TraceEvent::placed_ahead] == 5);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
}

// Two in the first window: what the peer could not place is not waited for.
TEST_CASE("What left before both ends knew of each other is all sent again after a loss") {
  Pair pair(selective());
  const Buffer near = pair.a.buffer(20 * 256, 1);
  const Buffer far = pair.b.buffer(20 * 256);
  lose_once(pair, true, {103, 110});
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(recovery_of(pair.a) == Recovery::selective_repeat);
  CHECK(retransmitted(pair) == 17);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
}

TEST_CASE("Half of the bits that say that a packet is placed say nothing") {
  wire::Bth bth;
  bth.reserved7 = wire::selective::kPlaced;
  CHECK_FALSE(wire::selective::is_placed(bth));
  bth.reserved7 |= wire::selective::kUnderstood;
  CHECK(wire::selective::is_placed(bth));
}

TEST_CASE("A NAK that others have overtaken undoes nothing") {
  Scoreboard board;
  board.begin(Psn{100}, 64);
  for (uint32_t psn = 100; psn < 103; ++psn) board.on_sent(0, Psn{psn}, Psn{psn + 1}, false);
  board.on_report(1, {Psn{103}, false, {}});
  REQUIRE(board.out() == 0);
  board.on_report(2, {Psn{101}, true, {}});
  CHECK(board.out() == 0);
  CHECK_FALSE(board.has_lost());
}

// A responder answers in order: nothing was to be heard of the SEND before.
TEST_CASE("What stood behind the answer to a READ is not overdue when that has come") {
  Scoreboard board;
  board.begin(Psn{100}, 64);
  board.on_sent(0, Psn{100}, Psn{102}, true);
  board.on_sent(1, Psn{102}, Psn{103}, false);
  CHECK(board.oldest_out_since() == std::nullopt);
  board.on_answer(500, Psn{100});
  board.on_answer(1000, Psn{101});
  board.slide(Psn{102});
  CHECK(board.oldest_out_since() == 1000);
  board.on_sent(1300, Psn{102}, Psn{103}, false);
  CHECK(board.oldest_out_since() == 1300);
}

TEST_CASE("What has just become the oldest packet is not overdue, unless it was sent again") {
  Scoreboard board;
  board.begin(Psn{100}, 64);
  for (uint32_t psn = 100; psn < 103; ++psn) board.on_sent(1, Psn{psn}, Psn{psn + 1}, false);
  CHECK(board.oldest_out_since() == 1);
  board.on_report(1000, {Psn{101}, false, {}});
  board.slide(Psn{101});
  CHECK(board.oldest_out_since() == 1000);
  // Nothing that left behind a copy tells of its loss.
  board.give_up(Psn{102});
  board.on_sent(1300, Psn{102}, Psn{103}, false);
  board.on_report(2000, {Psn{102}, false, {}});
  board.slide(Psn{102});
  CHECK(board.oldest_out_since() == 1300);
}

TEST_CASE("A packet that is lost again is found by what has left after it") {
  Pair pair(selective());
  agree(pair);
  const Buffer near = pair.a.buffer(200 * 256, 1);
  const Buffer far = pair.b.buffer(200 * 256);
  unsigned losses = 0;
  pair.lose = [&](const Sent& frame) { return frame.from_a && frame.psn == 103 && ++losses <= 3; };
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(losses == 4);
  CHECK(retransmitted(pair) >= 3);
  CHECK(retransmitted(pair) <= 6);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

TEST_CASE("The last packet of all is sent again long before the ACK timeout") {
  PairOptions options = selective();
  options.timeout = 18;  // 1 s
  Pair pair(options);
  agree(pair);
  lose_once(pair, true, {104});
  pair.a.post(write(pair.a.buffer(4 * 256, 1), pair.b.buffer(4 * 256)));
  pair.run_for(1 * kMs);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  // One to hear how far the responder has got, and the one that was lost.
  CHECK(retransmitted(pair) == 2);
}

TEST_CASE("What was lost at the end of a message is not found packet by packet") {
  PairOptions options = selective();
  options.timeout = 18;  // 1 s
  Pair pair(options);
  agree(pair);
  std::set<uint32_t> end;
  for (uint32_t psn = 151; psn <= 200; ++psn) end.insert(psn);
  lose_once(pair, true, end);
  pair.a.post(write(pair.a.buffer(100 * 256, 1), pair.b.buffer(100 * 256)));
  pair.run_for(5 * kMs);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(retransmitted(pair) <= 60);
}

TEST_CASE("READs that were lost at the end are not found one by one") {
  PairOptions options = selective();
  options.timeout = 18;
  options.max_rd_atomic = 16;
  Pair pair(options);
  agree(pair);
  std::set<uint32_t> all;
  for (uint32_t psn = 101; psn <= 116; ++psn) all.insert(psn);
  lose_once(pair, true, all);
  for (uint32_t i = 0; i < 16; ++i) pair.a.post(read(pair.a.buffer(8), pair.b.buffer(8, 5), i));
  pair.run_for(3 * kMs);
  CHECK(pair.a.send_cq.completions.size() == 16);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] <= 2);
}

TEST_CASE("SENDs that a shared receive queue has dropped behind a gap are all sent again at once") {
  PairOptions options = selective();
  options.timeout = 18;
  options.node.limits.window_packets = 64;
  options.equip_b = [](Host&, QpResources& resources) { resources.receives_are_shared = true; };
  Pair pair(options);
  agree(pair);
  const Buffer near = pair.a.buffer(200, 1), far = pair.b.buffer(200);
  for (uint32_t i = 0; i < 300; ++i) pair.b.receive(i, {far.sge()});
  lose_once(pair, true, {101});
  for (uint32_t i = 0; i < 300; ++i) pair.a.post(send(near, i));
  pair.run_for(5 * kMs);
  CHECK(pair.a.send_cq.completions.size() == 300);
  CHECK(retransmitted(pair) <= 80);
}

// The peer answers all of it before the request for what was lost reaches it.
TEST_CASE("A READ longer than what is kept track of goes on at once when its gap is filled") {
  PairOptions options = selective();
  options.timeout = 18;
  options.node.limits.window_packets = 16;
  Pair pair(options);
  for (Host* host : {&pair.a, &pair.b})
    pair.fabric.set_link(host->node(), pair.peer_of(*host).node(), {.delay_ns = 500 * kUs});
  agree(pair);
  const Buffer near = pair.a.buffer(400 * 256);
  const Buffer far = pair.b.buffer(400 * 256, 5);
  lose_once(pair, false, {111});
  pair.a.post(read(near, far));
  pair.run_for(100 * kMs);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.bytes(near) == pair.b.bytes(far));
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
}

TEST_CASE("SENDs are placed in the receives that they are for, and complete in order") {
  Pair pair(selective());
  agree(pair);
  std::vector<Buffer> near, far;
  for (uint8_t i = 0; i < 4; ++i) {
    near.push_back(pair.a.buffer(700, static_cast<uint8_t>(i + 1)));
    far.push_back(pair.b.buffer(1000));
    pair.b.receive(i, {far[i].sge(0, 100), far[i].sge(100, 900)});
  }
  lose_once(pair, true, {101, 105});
  for (uint8_t i = 0; i < 4; ++i) pair.a.post(send(near[i], i));
  pair.drive();
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{0, 1, 2, 3});
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{0, 1, 2, 3});
  for (size_t i = 0; i < 4; ++i) {
    std::vector<std::byte> got = pair.b.bytes(far[i]);
    got.resize(700);
    CHECK(got == pair.a.bytes(near[i]));
    CHECK(pair.b.receive_cq.completions[i].byte_length == 700);
  }
  CHECK(retransmitted(pair) == 2);
  CHECK(pair.b.counters()[TraceEvent::placed_ahead] == 10);
}

TEST_CASE("What has no receive yet is sent again when its turn comes") {
  PairOptions options = selective();
  options.rnr_retry = 7;
  Pair pair(options);
  agree(pair);
  const Buffer near = pair.a.buffer(600, 3);
  std::vector<Buffer> far{pair.b.buffer(600), pair.b.buffer(600)};
  pair.b.receive(0, {far[0].sge()});
  lose_once(pair, true, {102});
  pair.a.post(send(near, 0));
  pair.a.post(send(near, 1));
  pair.run_for(2 * kMs);
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{0});
  pair.b.receive(1, {far[1].sge()});
  pair.drive();
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{0, 1});
  for (const Buffer& buffer : far) CHECK(pair.b.bytes(buffer) == pair.a.bytes(near));
}

TEST_CASE("What has waited for a gap is put in place together") {
  Pair pair(selective());
  agree(pair);
  constexpr uint32_t kWrites = 200;
  const Buffer near = pair.a.buffer(kWrites * 8, 1);
  const Buffer far = pair.b.buffer(kWrites * 8);
  // Until all that is behind it has come.
  pair.lose = [lost = 0](const Sent& frame) mutable {
    return frame.from_a && frame.psn == 101 && ++lost <= 2;
  };
  const uint64_t before = pair.b.node().memory().scatter_batches();
  for (uint32_t i = 0; i < kWrites; ++i)
    pair.a.post(write({near.address + 8 * i, 8, near.key}, {far.address + 8 * i, 8, far.key}, i));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(pair.b.counters()[TraceEvent::placed_ahead] == kWrites - 1);
  CHECK(pair.b.node().memory().scatter_batches() - before <= 2);
}

TEST_CASE("A small WRITE that cannot be written is refused together with those behind it") {
  Pair pair(selective());
  agree(pair);
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8);
  const Buffer broken = pair.b.buffer(8);
  pair.b.node().memory().break_region(broken.key);
  lose_once(pair, true, {101});
  pair.a.post(write(near, far, 1));
  pair.a.post(write(near, broken, 2));
  pair.a.post(write(near, far, 3));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, WcStatus::remote_access_error, WcStatus::flush_error});
}

TEST_CASE("A receiver that is not ready behind a READ without its answer is waited for") {
  PairOptions options = selective();
  options.rnr_retry = 2;
  options.timeout = 18;
  Pair pair(options);
  agree(pair);
  unsigned lost = 0;
  pair.lose = [&](const Sent& frame) { return !frame.from_a && frame.psn == 101 && ++lost <= 6; };
  pair.a.post(read(pair.a.buffer(256), pair.b.buffer(256, 5), 1));
  pair.a.post(send(pair.a.buffer(100, 1), 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, WcStatus::rnr_retry_exceeded_error});
  CHECK(pair.count(pair.a, Operation::send_only) == 3);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

// The second READ is as much as the window allows, and more; the first may only have been
// overtaken.
TEST_CASE("After a wait for a receiver its packet leaves, whatever is out") {
  PairOptions options = selective();
  options.rnr_retry = 7;
  options.timeout = 18;
  options.node.limits.window_packets = 4;
  options.node.limits.multipath = true;
  Pair pair(options);
  agree(pair);
  lose_once(pair, false, {101});
  pair.a.post(read(pair.a.buffer(256), pair.b.buffer(256, 5), 1));
  pair.a.post(send(pair.a.buffer(100, 1), 2));
  pair.a.post(read(pair.a.buffer(20 * 256), pair.b.buffer(20 * 256, 6), 3));
  pair.run_for(1 * kMs);
  REQUIRE(pair.a.counters()[TraceEvent::rnr_nak_received] > 0);
  pair.b.receive(4, {pair.b.buffer(100).sge()});
  pair.run_for(10 * kMs);
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2, 3});
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

// A copy of the SEND that was refused is executed while its requester waits: nothing is left to
// send again when the wait is over, but for what was lost behind it.
TEST_CASE("What was lost behind a receiver that is not ready is missed after the wait") {
  Pair pair(selective());
  agree(pair);
  const Buffer near = pair.a.buffer(100, 1);
  const Buffer far = pair.b.buffer(100);
  lose_once(pair, true, {102});
  pair.a.post(send(near, 1));
  pair.a.post(write(near, far, 2));
  pair.run_for(30 * kUs);
  REQUIRE(pair.a.counters()[TraceEvent::rnr_nak_received] == 1);
  pair.b.receive(0, {pair.b.buffer(200).sge()});
  pair.inject(pair.b, Operation::send_only, 101, {}, pair.a.bytes(near));
  pair.drive();
  CHECK(pair.count(pair.a, Operation::send_only) == 1);
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
}

// Without a timeout nothing but the RNR NAK tells: `b` has no room for what comes behind it.
TEST_CASE("What left behind a SEND that found no receive is sent again after the wait") {
  PairOptions options = selective();
  options.timeout = 0;
  options.rnr_retry = 7;
  const bool knows = GENERATE(false, true);
  Pair pair(options);
  if (knows) agree(pair);
  const Buffer near = pair.a.buffer(8 * 256, 1);
  const Buffer far = pair.b.buffer(8 * 256);
  pair.a.post(send(near));
  pair.run_for(150 * kUs);
  REQUIRE(pair.a.counters()[TraceEvent::rnr_nak_received] > 1);
  pair.b.receive(0, {far.sge()});
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
}

// Nothing else would: the first answer may be to a packet that is too far ahead to be noted.
TEST_CASE("What go-back-N was about to send again when both ends know of each other still is") {
  RequesterStage stage;
  SendWindow window(stage.context());
  GoBackN recovery(stage.context(), window);
  window.start();
  recovery.start();
  stage.post(WorkOpcode::write, 10 * 1024);
  REQUIRE(window.take_next(0, [](const SendWork&) { return WcStatus::success; }));
  for (uint32_t psn = 100; psn < 110; ++psn) recovery.on_sent(0, Psn(psn), Psn(psn + 1), true);
  window.advance(10);
  SelectiveRepeat at_end(stage.context());
  at_end.begin(5, window, recovery.una(), recovery.sent_end());
  CHECK(at_end.board().out() == 10);
  at_end.board().on_report(5, {Psn(102), false, {}});
  CHECK(at_end.board().take_round_trip() == std::nullopt);  // when they left is not known
  REQUIRE(recovery.retry());
  window.advance(4);
  SelectiveRepeat under_way(stage.context());
  under_way.begin(0, window, recovery.una(), recovery.sent_end());
  CHECK(under_way.board().out() == 4);
  REQUIRE(under_way.board().has_lost());
  CHECK(under_way.board().first_lost() == Psn(104));
}

TEST_CASE("A late WRITE does not undo a newer one to the same place") {
  Pair pair(selective());
  agree(pair);
  const Buffer older = pair.a.buffer(256, 1);
  const Buffer newer = pair.a.buffer(256, 2);
  const Buffer far = pair.b.buffer(256);
  lose_once(pair, true, {101});
  pair.a.post(write(older, far, 1));
  pair.a.post(write(newer, far, 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(pair.b.bytes(far) == pair.a.bytes(newer));
}

TEST_CASE("Of a READ response the lost packets alone are asked for again") {
  Pair pair(selective());
  agree(pair);
  const Buffer near = pair.a.buffer(20 * 256);
  const Buffer far = pair.b.buffer(20 * 256, 5);
  lose_once(pair, false, {103, 107, 108});
  pair.a.post(read(near, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.bytes(near) == pair.b.bytes(far));
  const auto asked = pair.sent_by(pair.a, Operation::read_request);
  REQUIRE(asked.size() == 3);
  CHECK(asked[1].psn == 103);
  CHECK(asked[1].ext.reth.length_bytes == 256);
  CHECK(asked[1].ext.reth.virtual_address == far.address + 2 * 256);
  CHECK(asked[2].psn == 107);
  CHECK(asked[2].ext.reth.length_bytes == 2 * 256);
}

// READs that are answered meanwhile leave room for others, whose answers show that it was lost.
TEST_CASE("What a READ lacks and is lost again is asked for again once a later READ is answered") {
  Pair pair(selective());
  agree(pair);
  const Buffer far = pair.b.buffer(20 * 256, 5);
  uint32_t losses = 3;
  pair.lose = [&](const Sent& frame) {
    const bool is_piece = frame.psn == 103 && (frame.from_a ? losses == 2 : losses != 2);
    return is_piece && losses > 0 && losses-- > 0;
  };
  std::vector<Buffer> near;
  const uint64_t begin_ns = pair.fabric.now_ns();
  for (uint64_t id = 1; id <= 40; ++id)
    pair.a.post(read(near.emplace_back(pair.a.buffer(20 * 256)), far, id));
  uint64_t first_ns = 0;
  pair.a.send_cq.on_push = [&](const Completion&) {
    if (first_ns == 0) first_ns = pair.fabric.now_ns();
  };
  pair.drive();
  CHECK(losses == 0);
  CHECK(first_ns - begin_ns < RttEstimator::kFloorNs);  // less than any overdue answer
  for (const Buffer& buffer : near) CHECK(pair.a.bytes(buffer) == pair.b.bytes(far));
  CHECK(pair.a.send_cq.completions.size() == 40);
  size_t asked = 0;
  for (const Sent& frame : pair.sent_by(pair.a, Operation::read_request)) asked += frame.psn == 103;
  CHECK(asked == 3);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
}

TEST_CASE("An atomic that waits for an older READ to complete counts against max_rd_atomic") {
  PairOptions options = selective();
  options.max_rd_atomic = 2;
  Pair pair(options);
  agree(pair);
  const Buffer far = pair.b.buffer(4 * 256, 5);
  const Buffer cell = pair.b.buffer(8);
  const bool atomic = GENERATE(true, false);
  pair.lose = [](const Sent& frame) { return !frame.from_a && frame.psn == 102; };
  pair.a.post(read(pair.a.buffer(4 * 256), far, 1));
  if (atomic) {
    pair.a.post(fetch_add(pair.a.buffer(8), cell, 1, 2));
  } else {
    pair.a.post(read(pair.a.buffer(8), cell, 2));
  }
  pair.a.post(read(pair.a.buffer(4 * 256), far, 3));
  pair.run_for(150 * kUs);
  std::set<uint32_t> asked;
  for (const Sent& frame : pair.sent_by(pair.a, Operation::read_request)) asked.insert(frame.psn);
  CHECK(asked.contains(106) == !atomic);
  CHECK(pair.a.endpoint().load(pair.a.qpn).rd_atomics == (atomic ? 2 : 1));
  pair.lose = {};
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE("A READ request that was lost is sent again whole, and what follows it waits") {
  Pair pair(selective());
  agree(pair);
  const Buffer near = pair.a.buffer(8 * 256);
  const Buffer far = pair.b.buffer(8 * 256, 5);
  const Buffer cell = pair.b.buffer(8);
  const Buffer result = pair.a.buffer(8);
  pair.b.set_word(cell, 40);
  lose_once(pair, true, {101});
  pair.a.post(read(near, far, 1));
  pair.a.post(fetch_add(result, cell, 2, 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(pair.a.bytes(near) == pair.b.bytes(far));
  CHECK(pair.a.word(result) == 40);
  CHECK(pair.b.word(cell) == 42);
}

TEST_CASE("An atomic whose answer is lost is not executed again") {
  Pair pair(selective());
  agree(pair);
  const Buffer cell = pair.b.buffer(8);
  const Buffer result = pair.a.buffer(16);
  lose_once(pair, false, {101});
  pair.a.post(fetch_add({result.address, 8, result.key}, cell, 1, 1));
  pair.a.post(fetch_add({result.address + 8, 8, result.key}, cell, 1, 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(pair.a.word(result) == 0);
  CHECK(pair.a.word(result, 8) == 1);
  CHECK(pair.b.word(cell) == 2);
}

TEST_CASE("A packet ahead with a key that grants nothing fails in its turn") {
  Pair pair(selective());
  agree(pair);
  Buffer far = pair.b.buffer(1024);
  far.key ^= 1;
  lose_once(pair, true, {101});
  pair.a.post(write(pair.a.buffer(256, 1), pair.b.buffer(256), 1));
  pair.a.post(write(pair.a.buffer(1024, 1), far, 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::remote_access_error});
  CHECK(pair.b.had_event(QpEvent::access_error));
}

TEST_CASE("What a packet says of its place has to prove true") {
  Pair pair(selective());
  agree(pair);
  const Buffer far = pair.b.buffer(4096);
  pair.b.receive(1, {far.sge()});
  std::vector<std::byte> placed(8 + 256);
  wire::ExtendedHeaders ext;
  ext.receive_place = {0, 7};  // and not the second packet of that message
  const wire::Bth bth = bth_of(Operation::send_last, 102, true);
  wire::selective::store_place(placed.data(), bth.opcode, ext);
  const auto frame = pair.frame_for(pair.b, bth, {}, placed);
  const std::span<const std::byte> ahead(frame);
  pair.b.endpoint().on_frames(pair.fabric.now_ns(), std::span(&ahead, 1));
  CHECK(pair.b.counters()[TraceEvent::placed_ahead] == 1);
  pair.inject(pair.b, Operation::send_first, 101, {}, std::vector<std::byte>(256));
  pair.drive();
  CHECK(pair.b.state() == QpState::error);
  CHECK(statuses(pair.b.receive_cq) == std::vector{WcStatus::flush_error});
}

TEST_CASE("READs that were asked for again gap by gap leave room for the next one") {
  PairOptions options = selective();
  options.max_rd_atomic = 1;
  Pair pair(options);
  agree(pair);
  const Buffer far = pair.b.buffer(8 * 256, 5);
  pair.a.post(read(pair.a.buffer(8 * 256), far));
  pair.drive();
  // Two gaps of the READ that is over, and another READ, before any of them is answered.
  for (const uint32_t psn : {101u, 103u, 109u})
    ask_for(pair, psn, far, (psn - 101) * 256 % far.length_bytes, 256);
  pair.drive();
  CHECK(pair.b.state() == QpState::ready_to_send);
  CHECK(psns_by(pair, false).back() == 109);
}

// The answer that is sent again is all that the requester needs to go on.
TEST_CASE("A READ that is asked for again while it is answered leaves room for the next one") {
  PairOptions options = selective();
  options.max_rd_atomic = 1;
  Pair pair(options);
  agree(pair);
  const Buffer far = pair.b.buffer(128 * 256, 5);
  ask_for(pair, 101, far, 0, far.length_bytes);
  while (psns_by(pair, false).empty()) pair.run_for(100);
  REQUIRE(psns_by(pair, false).size() < 64);
  ask_for(pair, 101, far, 0, far.length_bytes);
  ask_for(pair, 229, far, 0, far.length_bytes);
  pair.drive();
  CHECK(pair.b.state() == QpState::ready_to_send);
  CHECK(psns_by(pair, false).back() == 229 + 127);
}

TEST_CASE("A packet ahead claims no receives of others") {
  PairOptions options = selective();
  options.a_shares_receives = true;
  Pair pair(options);
  for (Host* host : {&pair.a, &pair.b})
    for (uint64_t id = 0; id < 10; ++id) host->receive(id, {host->buffer(200).sge()});
  SECTION("of an SRQ: beyond the next message") {
    pair.a.node().receive(network::SharedFrame(send_for(pair, pair.a, 5008, 5)));
    pair.drive();
    CHECK(receives_left(pair.a) == 10);
  }
  SECTION("of an SRQ: the next message's") {
    pair.a.node().receive(network::SharedFrame(send_for(pair, pair.a, 5001, 1)));
    pair.drive();
    CHECK(receives_left(pair.a) == 8);
  }
  SECTION("for more messages than there are packets before it") {
    pair.b.node().receive(network::SharedFrame(send_for(pair, pair.b, 102, 3)));
    pair.drive();
    CHECK(receives_left(pair.b) == 10);
  }
}

TEST_CASE("An atomic does not complete without its value") {
  Pair pair(selective());
  agree(pair);
  const Buffer cell = pair.b.buffer(8);
  const Buffer result = pair.a.buffer(8);
  const Buffer broken = pair.a.buffer(8);
  pair.a.node().memory().break_region(broken.key);
  lose_once(pair, false, {101});  // the second's answer comes first
  pair.a.post(fetch_add(result, cell, 1, 1));
  pair.a.post(fetch_add(broken, cell, 1, 2));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, WcStatus::local_protection_error});
}

TEST_CASE("A selective NAK names no more than a responder can hold") {
  Pair pair(selective());
  agree(pair);
  pair.lose = [](const Sent& frame) { return frame.from_a; };
  pair.a.post(write(pair.a.buffer(4 * 256, 1), pair.b.buffer(4 * 256)));
  pair.run_for(5 * kUs);
  REQUIRE(pair.a.endpoint().load(pair.a.qpn).unacknowledged_psns == 4);
  std::vector<std::byte> taken(Scoreboard::kMaxPsns / 8 + (GENERATE(true, false) ? 1 : 0));
  taken[0] = std::byte{0b111};
  wire::ExtendedHeaders ext;
  ext.aeth.syndrome = wire::syndrome::kNakSequence;
  pair.a.node().receive(network::SharedFrame(
      pair.frame_for(pair.a, bth_of(Operation::read_response_only, 101, true), ext, taken)));
  pair.run_for(5 * kUs);
  const bool believed = taken.size() == Scoreboard::kMaxPsns / 8;
  CHECK(pair.a.counters()[TraceEvent::sequence_nak_received] == (believed ? 1 : 0));
  CHECK(retransmitted(pair) == (believed ? 1 : 0));
}

TEST_CASE("Packets that overtake each other on many paths are not sent again") {
  PairOptions options = selective();
  options.node.limits.multipath = true;
  Pair pair(options);
  const impairment::Impairments paths{
      .delay_ns = 10 * kUs, .reorder_ppm = 300'000, .reorder_delay_ns = 8 * kUs};
  pair.fabric.set_link(pair.a.node(), pair.b.node(), paths);
  pair.fabric.set_link(pair.b.node(), pair.a.node(), paths);
  agree(pair);
  const Buffer near = pair.a.buffer(400 * 256, 1);
  const Buffer far = pair.b.buffer(400 * 256);
  const Buffer back = pair.a.buffer(400 * 256);
  pair.a.post(write(near, far));
  pair.a.post(fenced(read(back, far)));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(pair.a.bytes(back) == pair.a.bytes(near));
  CHECK(pair.b.counters()[TraceEvent::placed_ahead] > 20);
  CHECK(retransmitted(pair) == 0);
  std::set<uint16_t> ports;
  for (const Sent& frame : pair.sent)
    if (frame.payload_bytes > 0) ports.insert(frame.source_port);
  CHECK(ports.size() > 300);
}

}  // namespace rocemu::transport_test
