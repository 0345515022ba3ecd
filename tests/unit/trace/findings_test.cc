// What is said of a QP beside where its time went: failures, receives, READs in no order.
#include "emulator/trace/show/findings.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "emulator/trace/show/story.h"
#include "emulator/trace/show/why.h"
#include "emulator/wire/headers.h"
#include "tests/unit/trace/trace_builder.h"

namespace rocemu::trace {

namespace {

using Catch::Contains;
using Operation = wire::Operation;

std::string why(const TraceBuilder& builder, uint32_t qpn = TraceBuilder::kA) {
  const Trace trace = builder.read();
  std::ostringstream out;
  REQUIRE(tell_why(tell(trace), {.qpn = qpn}, out));
  return out.str();
}

void write_with_bad_rkey(TraceBuilder& builder) {
  builder.request(0, Kind::posted, 1).opcode = verbs::wr_opcode::kRdmaWrite;
  Record& taken = builder.request(1, Kind::taken, 1);
  taken.opcode = verbs::wr_opcode::kRdmaWrite;
  taken.value = 0x7000;
  taken.detail = 0xabc;
  builder.crossing(2, 100, 0, Operation::write_only);
  builder.records()[builder.records().size() - 2].request = 1;
  Record& refused = builder.add(3, Kind::packet_refused, 1);
  refused.psn = 100;
  refused.program = 1;
  refused.code = wire::syndrome::kNakRemoteAccess;
  builder.request(5, Kind::completion_pushed, 1).code = 10;
  builder.request(5, Kind::completion_pushed, 2).code = 5;
}

// A receive of `device` 1 that came and was polled at these times.
void receive(TraceBuilder& builder, uint32_t number, uint64_t came_us, uint64_t polled_us) {
  builder.request(came_us, Kind::completion_pushed, number, 1).flags = flag::kReceiveQueue;
  builder.request(polled_us, Kind::completion_polled, number, 1).flags = flag::kReceiveQueue;
}

// One of QP kA, or of `qpn`, which is connected to `qpn` + 1 of the other device.
void access(TraceBuilder& builder, uint32_t qpn, uint32_t number, uint8_t opcode, uint64_t from_us,
            uint64_t to_us, uint64_t address = 0x7000, uint16_t flags = 0) {
  Record& taken = builder.request(from_us, Kind::taken, number);
  taken.qpn = qpn;
  taken.opcode = opcode;
  taken.value = address;
  taken.detail = 0xabc;
  taken.flags = flags;
  builder.request(to_us, Kind::completion_pushed, number).qpn = qpn;
}

TraceBuilder two_connections() {
  TraceBuilder builder;
  builder.connected();
  Record& state = builder.add(0, Kind::qp_state);
  state.qpn = 0x21;
  state.code = static_cast<uint8_t>(verbs::QpState::ready_to_send);
  state.peer_qpn = 0x22;
  state.peer_device = 1;
  return builder;
}

}  // namespace

TEST_CASE("trace why: which request failed, by whose rule, and what to compare") {
  TraceBuilder builder;
  builder.connected();
  write_with_bad_rkey(builder);
  CHECK_THAT(
      why(builder),
      Contains("RDMA WRITE of 64 B at 0x7000 by rkey 0xabc, wr_id 0x101, failed: remote "
               "access error.") &&
          Contains("WRITE_ONLY, PSN 100, was refused by QP 0x12 of rocemu1, by rule bad_rkey") &&
          Contains("1 other was flushed") && Contains("The rkey or the address is not valid"));
}

TEST_CASE("trace why: a receiver without receives is not one that does not poll") {
  for (const bool is_slow : {false, true}) {
    TraceBuilder builder;
    builder.connected();
    builder.request(0, Kind::posted, 1);
    builder.request(0, Kind::taken, 1);
    builder.crossing(1, 100);
    receive(builder, 1, 2, is_slow ? 900 : 3);
    builder.crossing(199, 101);
    builder.add(200, Kind::rnr_sent, 1);
    builder.add(201, Kind::rnr_received).value = 500'000;
    builder.crossing(910, 101);
    Record& again = builder.records()[builder.records().size() - 2];
    again.flags = flag::kRetransmission;
    again.cause = Cause::rnr_nak;
    receive(builder, 2, 911, 912);
    builder.request(920, Kind::completion_pushed, 1);
    const std::string sender = why(builder), receiver = why(builder, TraceBuilder::kB);
    CHECK_THAT(sender, Contains("the receiver was not ready (RNR)"));
    CHECK((sender.find("slow to take what it has") != std::string::npos) == is_slow);
    CHECK_THAT(receiver, Contains("It has received 2 messages") && Contains("1 RNR NAK"));
    CHECK((receiver.find("had posted too few receives") != std::string::npos) == !is_slow);
    CHECK((receiver.find("slower than what comes") != std::string::npos) == is_slow);
  }
}

TEST_CASE("trace why: a READ behind a WRITE of another QP is in no order with it") {
  TraceBuilder builder = two_connections();
  access(builder, TraceBuilder::kA, 1, verbs::wr_opcode::kRdmaWrite, 10, 500);
  access(builder, 0x21, 1, verbs::wr_opcode::kRdmaRead, 11, 30);
  CHECK_THAT(why(builder, 0x21), Contains("1 time a READ was under way together") &&
                                     Contains("of QP 0x11 of rocemu0, which was taken before and "
                                              "was not over when the READ was"));
  CHECK_THAT(why(builder), !Contains("under way together"));
}

TEST_CASE("trace why: READs that are in order, or look at other bytes, are not told of") {
  TraceBuilder apart = two_connections();
  access(apart, TraceBuilder::kA, 1, verbs::wr_opcode::kRdmaWrite, 10, 500);
  access(apart, 0x21, 1, verbs::wr_opcode::kRdmaRead, 11, 30, 0x7040);
  access(apart, 0x21, 2, verbs::wr_opcode::kRdmaRead, 501, 520);
  CHECK_THAT(why(apart, 0x21), !Contains("under way together"));

  // In one QP a WRITE is done before the READ behind it, and what is behind a READ is not.
  TraceBuilder one;
  one.connected();
  access(one, TraceBuilder::kA, 1, verbs::wr_opcode::kRdmaWrite, 10, 100);
  access(one, TraceBuilder::kA, 2, verbs::wr_opcode::kRdmaRead, 11, 101);
  access(one, TraceBuilder::kA, 3, verbs::wr_opcode::kRdmaWrite, 12, 102, 0x7000, flag::kFence);
  CHECK_THAT(why(one), !Contains("under way together"));
  access(one, TraceBuilder::kA, 4, verbs::wr_opcode::kRdmaWrite, 13, 103);
  CHECK_THAT(why(one), Contains("of the same QP") && Contains("IBV_SEND_FENCE"));
}

TEST_CASE("trace why: what has its completion is over, though others are acknowledged later") {
  TraceBuilder builder;
  builder.connected();
  access(builder, TraceBuilder::kA, 1, verbs::wr_opcode::kRdmaRead, 10, 16);
  Record& write = builder.request(20, Kind::taken, 2);
  write.opcode = verbs::wr_opcode::kRdmaWrite;
  write.value = 0x7000;
  write.detail = 0xabc;
  builder.add(25, Kind::acknowledged).request = 2;
  access(builder, TraceBuilder::kA, 3, verbs::wr_opcode::kRdmaRead, 26, 30);
  CHECK_THAT(why(builder), !Contains("under way together"));
}

TEST_CASE("trace why: a receive that failed, of a QP that sends nothing") {
  TraceBuilder builder;
  builder.connected();
  builder.crossing(1, 100);
  Record& failed = builder.request(2, Kind::completion_pushed, 1, 1);
  failed.flags = flag::kReceiveQueue;
  failed.code = 1;
  CHECK_THAT(why(builder, TraceBuilder::kB),
             Contains("1 completion with an error.") && Contains("wr_id 0x101, failed: ") &&
                 Contains("The local buffers are shorter than the message"));
}

TEST_CASE("trace why: a timeout names what was lost, and how long it is") {
  TraceBuilder builder;
  builder.connected();
  builder.request(0, Kind::posted, 1);
  builder.request(0, Kind::taken, 1);
  builder.packet(1, Kind::packet_sent, 100).request = 1;
  builder.packet(1, Kind::packet_lost, 100).program = 1;
  builder.add(70'000, Kind::ack_timeout).psn = 100;
  builder.crossing(70'001, 100);
  builder.request(70'010, Kind::completion_pushed, 1);
  CHECK_THAT(why(builder), Contains("Lost first: SEND_ONLY, PSN 100, by loss=1%") &&
                               Contains("It is 14 now, 67.11 ms."));
}

}  // namespace rocemu::trace
