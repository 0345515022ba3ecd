// Hand-built frames to a responder and a requester: duplicates, answers nobody asked for. What
// draws a NAK by its opcode or length is in tests/scripts/message.
#include <array>
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

wire::ExtendedHeaders aeth(uint8_t syndrome) {
  wire::ExtendedHeaders ext;
  ext.aeth.syndrome = syndrome;
  return ext;
}

// What b answered last: its syndrome and PSN.
std::pair<uint8_t, uint32_t> last_answer(const Pair& pair) {
  const std::vector<Sent> answers = pair.sent_by(pair.b, Operation::acknowledge);
  if (answers.empty()) return {0xff, 0};
  return {answers.back().ext.aeth.syndrome, answers.back().psn};
}

}  // namespace

TEST_CASE("A duplicate SEND is acknowledged with the newest PSN and not executed") {
  Pair pair;
  const Buffer inbox = pair.b.buffer(8);
  for (uint64_t id : {1, 2, 3}) pair.b.receive(id, {inbox.sge()});
  pair.inject(pair.b, Operation::send_only, kPsn, {}, filled(8, 1));
  pair.inject(pair.b, Operation::send_only, kPsn + 1, {}, filled(8, 2));
  pair.run_for(10 * kUs);
  pair.inject(pair.b, Operation::send_only, kPsn, {}, filled(8, 1), false);
  pair.drive();
  CHECK(pair.b.receive_cq.completions.size() == 2);
  CHECK(pair.b.bytes(inbox) == filled(8, 2));
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kAck, kPsn + 1});
}

TEST_CASE("A duplicate WRITE does not write again") {
  Pair pair;
  const Buffer far = pair.b.buffer(8);
  pair.inject(pair.b, Operation::write_only, kPsn, reth(far, 8), filled(8, 1));
  pair.inject(pair.b, Operation::write_only, kPsn + 1, reth(far, 8), filled(8, 2));
  pair.inject(pair.b, Operation::write_only, kPsn, reth(far, 8), filled(8, 1));
  pair.drive();
  CHECK(pair.b.bytes(far) == filled(8, 2));
  CHECK(pair.b.counters()[TraceEvent::duplicate_request] == 1);
}

TEST_CASE("A duplicate READ reads memory again") {
  Pair pair;
  const Buffer far = pair.b.buffer(8, 9);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.run_for(10 * kUs);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.drive();
  CHECK(pair.count(pair.b, Operation::read_response_only) == 2);
}

TEST_CASE("A READ that asks for more than a message may have is an invalid request") {
  Pair pair;
  pair.inject(pair.b, Operation::read_request, kPsn, reth(pair.b.buffer(8), 0x80000001));
  pair.drive();
  const std::vector<Sent> answers = pair.sent_by(pair.b, Operation::acknowledge);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].ext.aeth.syndrome == wire::syndrome::kNakInvalidRequest);
}

TEST_CASE("A duplicate READ that asks for more than was ever granted is ignored") {
  Pair pair;
  const Buffer far = pair.b.buffer(8, 9);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.run_for(10 * kUs);
  for (const uint32_t bytes : {9u, 2000u, 0x80000001u, 0xffffffffu})
    pair.inject(pair.b, Operation::read_request, kPsn, reth(far, bytes));
  pair.drive();
  CHECK(pair.count(pair.b, Operation::read_response_only) == 1);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("A duplicate atomic that is no longer remembered gets no answer") {
  PairOptions options;
  options.max_rd_atomic = 2;
  Pair pair(options);
  const Buffer cell = pair.b.buffer(8);
  wire::ExtendedHeaders ext;
  ext.atomic = {cell.address, wire::RKey{cell.key}, 1, 0};
  for (uint32_t i = 0; i < 3; ++i) {
    pair.inject(pair.b, Operation::fetch_add, kPsn + i, ext);
    pair.run_for(10 * kUs);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    pair.inject(pair.b, Operation::fetch_add, kPsn + i, ext);
    pair.run_for(10 * kUs);
  }
  CHECK(pair.b.word(cell) == 3);
  CHECK(pair.count(pair.b, Operation::atomic_acknowledge) == 5);
}

TEST_CASE("A new READ is taken while replays wait") {
  PairOptions options;
  options.max_rd_atomic = 1;
  Pair pair(options);
  const Buffer far = pair.b.buffer(8, 9);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.run_for(10 * kUs);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.inject(pair.b, Operation::read_request, kPsn + 1, reth(far, 8));
  pair.drive();
  CHECK(pair.b.state() == QpState::ready_to_send);
  CHECK(pair.sent_by(pair.b, Operation::read_response_only).back().psn == kPsn + 1);
}

TEST_CASE("What is asked for again is answered before what comes after it") {
  Pair pair;
  const Buffer far = pair.b.buffer(64 * 1024, 9);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.run_for(10 * kUs);
  std::vector<std::vector<std::byte>> frames;
  const auto ask = [&](uint32_t psn, uint32_t bytes) {
    wire::Bth bth;
    bth.opcode = wire::bth_opcode(wire::Transport::rc, Operation::read_request);
    bth.psn = Psn(psn);
    frames.push_back(pair.frame_for(pair.b, bth, reth(far, bytes), {}));
  };
  ask(kPsn + 1, 64 * 1024);
  ask(kPsn + 65, 64 * 1024);
  const std::vector<std::span<const std::byte>> views(frames.begin(), frames.end());
  pair.sent.clear();
  pair.b.endpoint().on_frames(pair.fabric.now_ns(), views);
  pair.inject(pair.b, Operation::read_request, kPsn, reth(far, 8));
  pair.drive();
  REQUIRE(pair.sent.size() == 129);
  for (uint32_t i = 0; i < 129; ++i) CHECK(pair.sent[i].psn == kPsn + i);
}

TEST_CASE("Answers that wait are bounded, whatever a peer asks for again") {
  PairOptions options;
  options.max_rd_atomic = 2;
  Pair pair(options);
  const Buffer far = pair.b.buffer(8, 9);
  for (uint32_t i = 0; i < 3; ++i) {
    pair.inject(pair.b, Operation::read_request, kPsn + 2 * i, reth(far, 8));
    pair.inject(pair.b, Operation::write_only, kPsn + 2 * i + 1, reth(far, 8), filled(8));
    pair.run_for(10 * kUs);
  }
  // Expect: without a turn to send, no queue grows by what arrives.
  std::vector<std::vector<std::byte>> frames;
  for (uint32_t i = 0; i < 300; ++i) {
    wire::Bth bth;
    bth.opcode = wire::bth_opcode(wire::Transport::rc,
                                  i % 2 == 0 ? Operation::read_request : Operation::write_only);
    bth.psn = Psn(kPsn + i % 6);
    frames.push_back(pair.frame_for(pair.b, bth, reth(far, 8), i % 2 == 0 ? filled(0) : filled(8)));
  }
  const std::vector<std::span<const std::byte>> views(frames.begin(), frames.end());
  pair.b.endpoint().on_frames(pair.fabric.now_ns(), views);
  CHECK(pair.b.endpoint().load(pair.b.qpn).queued_responses <= 2 * 2 + 3);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("A NAK that has not left when its packet comes asks for what it was drawn by") {
  Pair pair;
  const Buffer far = pair.b.buffer(8);
  pair.inject(pair.b, Operation::write_only, kPsn + 2, reth(far, 8), filled(8));
  pair.inject(pair.b, Operation::write_only, kPsn, reth(far, 8), filled(8), false);
  SECTION("and which was thrown away") {
    pair.drive();
    CHECK(pair.count(pair.b, Operation::acknowledge) == 1);
    CHECK(last_answer(pair) == std::pair{wire::syndrome::kNakSequence, kPsn + 1});
  }
  SECTION("if that has not come as well meanwhile") {
    pair.inject(pair.b, Operation::write_only, kPsn + 1, reth(far, 8), filled(8), false);
    pair.inject(pair.b, Operation::write_only, kPsn + 2, reth(far, 8), filled(8));
    pair.drive();
    CHECK(pair.count(pair.b, Operation::acknowledge) == 1);
    CHECK(last_answer(pair) == std::pair{wire::syndrome::kAck, kPsn + 2});
  }
}

TEST_CASE("An RNR NAK that has not left stays one when a gap shows behind it") {
  Pair pair;
  const Buffer far = pair.b.buffer(8);
  pair.inject(pair.b, Operation::send_only, kPsn, {}, filled(8));
  pair.inject(pair.b, Operation::write_only, kPsn + 2, reth(far, 8), filled(8));
  pair.inject(pair.b, Operation::write_only, kPsn + 1, reth(far, 8), filled(8));
  pair.drive();
  CHECK(pair.count(pair.b, Operation::acknowledge) == 1);
  CHECK(wire::syndrome::is_rnr(last_answer(pair).first));
}

TEST_CASE("An ACK leaves before the data of other QPs") {
  Pair pair;
  pair.drive();
  sim::SimReceiveQueue receives;
  sim::SimCompletionQueue cq;
  sim::SimSendQueue sends(4);
  const wire::Qpn busy = *pair.b.endpoint().create_rc({1, &sends, &receives, &cq, &cq});
  for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
    pair.b.endpoint().modify(busy, state, pair.b.attributes);
  sends.post(write(pair.b.buffer(100 * 1024), pair.a.buffer(100 * 1024)));
  pair.b.endpoint().on_doorbell(busy);
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(wire::Transport::rc, Operation::write_only);
  bth.psn = Psn(kPsn);
  bth.ack_request = true;
  const auto frame = pair.frame_for(pair.b, bth, reth(pair.b.buffer(8), 8), filled(8));
  const std::span<const std::byte> view(frame);
  pair.b.endpoint().on_frames(pair.fabric.now_ns(), {&view, 1});
  pair.b.node().wake();
  pair.run_for(5 * kUs);
  REQUIRE(pair.sent.size() > 1);
  CHECK(pair.sent.front().operation == Operation::acknowledge);
}

TEST_CASE("A program that takes the QP to ERROR does not touch answers that still leave") {
  Pair pair;
  constexpr uint32_t kPackets = 20;
  const Buffer far = pair.b.buffer(kPackets * 1024, 9);
  Buffer forbidden = far;
  forbidden.key = 77;
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(wire::Transport::rc, Operation::read_request);
  bth.psn = Psn(kPsn);
  const auto wanted = pair.frame_for(pair.b, bth, reth(far, kPackets * 1024), {});
  bth.opcode = wire::bth_opcode(wire::Transport::rc, Operation::write_only);
  bth.psn = Psn(kPsn + kPackets);
  const auto refused = pair.frame_for(pair.b, bth, reth(forbidden, 8), filled(8));
  const std::array<std::span<const std::byte>, 2> frames{wanted, refused};
  pair.b.endpoint().on_frames(pair.fabric.now_ns(), frames);
  CHECK(pair.b.state() == QpState::error);
  // As the device does it: without attributes.
  pair.b.endpoint().modify(pair.b.qpn, QpState::error, {});
  pair.drive();
  CHECK(pair.count(pair.b, Operation::read_response_middle) == kPackets - 2);
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kNakRemoteAccess, kPsn + kPackets});
}

TEST_CASE("One READ more than max_dest_rd_atomic ends the connection") {
  PairOptions options;
  options.max_rd_atomic = 2;
  Pair pair(options);
  const Buffer far = pair.b.buffer(8, 9);
  for (uint32_t i = 0; i < 3; ++i)
    pair.inject(pair.b, Operation::read_request, kPsn + i, reth(far, 8));
  pair.drive();
  CHECK(pair.count(pair.b, Operation::read_response_only) == 2);
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kNakInvalidRequest, kPsn + 2});
  CHECK(pair.b.state() == QpState::error);
}

TEST_CASE("A gap draws one NAK until it is filled, and the next gap another") {
  Pair pair;
  const Buffer far = pair.b.buffer(8);
  const auto write_at = [&](uint32_t psn) {
    pair.inject(pair.b, Operation::write_only, psn, reth(far, 8), filled(8));
    pair.run_for(10 * kUs);
  };
  for (const uint32_t psn : {kPsn + 1, kPsn + 2, kPsn + 5}) write_at(psn);
  CHECK(pair.count(pair.b, Operation::acknowledge) == 1);
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kNakSequence, kPsn});
  write_at(kPsn);
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kAck, kPsn});
  write_at(kPsn + 3);
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kNakSequence, kPsn + 1});
}

TEST_CASE("What drew a NAK and comes again draws another: the packet that was asked for is lost") {
  Pair pair;
  const Buffer far = pair.b.buffer(8);
  const auto write_at = [&](uint32_t psn) {
    pair.inject(pair.b, Operation::write_only, psn, reth(far, 8), filled(8));
    pair.run_for(10 * kUs);
  };
  for (const uint32_t psn : {kPsn + 2, kPsn + 3, kPsn + 4}) write_at(psn);
  CHECK(pair.count(pair.b, Operation::acknowledge) == 1);
  // Expect: kPsn was lost again, kPsn + 1 is new; each return to the gap draws one NAK.
  for (const uint32_t psn : {kPsn + 1, kPsn + 2, kPsn + 3}) write_at(psn);
  CHECK(pair.count(pair.b, Operation::acknowledge) == 2);
  for (const uint32_t psn : {kPsn + 1, kPsn + 2, kPsn + 3}) write_at(psn);
  CHECK(pair.count(pair.b, Operation::acknowledge) == 3);
  CHECK(last_answer(pair) == std::pair{wire::syndrome::kNakSequence, kPsn});
}

TEST_CASE("The MSN counts messages") {
  Pair pair;
  const Buffer far = pair.b.buffer(2048, 9);
  pair.inject(pair.b, Operation::write_first, kPsn, reth(far, 1500), filled(1024));
  pair.run_for(10 * kUs);
  CHECK(pair.sent_by(pair.b, Operation::acknowledge).back().ext.aeth.msn == 0);
  pair.inject(pair.b, Operation::write_last, kPsn + 1, {}, filled(476));
  pair.run_for(10 * kUs);
  CHECK(pair.sent_by(pair.b, Operation::acknowledge).back().ext.aeth.msn == 1);
  pair.inject(pair.b, Operation::read_request, kPsn + 2, reth(far, 8));
  pair.run_for(10 * kUs);
  CHECK(pair.sent_by(pair.b, Operation::read_response_only).back().ext.aeth.msn == 2);
}

TEST_CASE("Answers nobody waits for change nothing") {
  Pair pair;
  const uint8_t syndrome =
      GENERATE(wire::syndrome::kAck, wire::syndrome::kNakSequence, wire::syndrome::kNakRemoteAccess,
               uint8_t{wire::syndrome::kRnr | 5});
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  // Expect: a PSN that was acknowledged, and one that was never sent, are stale.
  for (const uint32_t psn : {kPsn - 1, kPsn, kPsn + 1, kPsn + 0x700000})
    pair.inject(pair.a, Operation::acknowledge, psn, aeth(syndrome));
  pair.inject(pair.a, Operation::read_response_only, kPsn, aeth(syndrome), filled(8));
  pair.inject(pair.a, Operation::atomic_acknowledge, kPsn, aeth(syndrome));
  pair.drive();
  CHECK(pair.a.counters()[TraceEvent::stale_ack] == 6);
  CHECK(pair.a.state() == QpState::ready_to_send);
  CHECK(pair.a.send_cq.completions.size() == 1);
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 0);
}

TEST_CASE("Frames that are not for this QP are counted and dropped") {
  Pair pair;
  const Buffer far = pair.b.buffer(8);
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(wire::Transport::rc, Operation::write_only);
  bth.psn = Psn(kPsn);
  std::vector<std::byte> frame = pair.frame_for(pair.b, bth, reth(far, 8), filled(8));
  SECTION("bad ICRC") {
    frame.back() ^= std::byte{1};
    pair.b.node().receive(network::SharedFrame(frame));
    pair.drive();
    CHECK(pair.b.counters()[TraceEvent::icrc_error] == 1);
  }
  SECTION("cut off") {
    frame.pop_back();
    pair.b.node().receive(network::SharedFrame(frame));
    pair.drive();
    CHECK(pair.b.counters()[TraceEvent::malformed] == 1);
  }
  SECTION("another transport") {
    bth.opcode = wire::bth_opcode(wire::Transport::uc, Operation::write_only);
    pair.b.node().receive(
        network::SharedFrame(pair.frame_for(pair.b, bth, reth(far, 8), filled(8))));
    pair.drive();
    CHECK(pair.b.counters()[TraceEvent::mismatched] == 1);
  }
  SECTION("unknown QP") {
    pair.b.endpoint().destroy(pair.b.qpn);
    pair.b.node().receive(network::SharedFrame(frame));
    pair.drive();
    CHECK(pair.b.counters()[TraceEvent::no_qp] == 1);
  }
  CHECK(pair.b.bytes(far) == std::vector<std::byte>(8));
  CHECK(pair.sent.empty());
}

}  // namespace rocemu::transport_test
