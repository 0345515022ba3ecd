// Records become packets, requests and connections; and hostile ones become no crash.
#include "emulator/trace/show/story.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "base/random.h"
#include "emulator/trace/show/ladder.h"
#include "emulator/trace/show/remarks.h"
#include "emulator/trace/show/text.h"
#include "tests/unit/trace/trace_builder.h"

namespace rocemu::trace {

namespace {

using Catch::Contains;
using Operation = wire::Operation;

std::string remarks(const Story& story, size_t packet) {
  std::string all;
  for (const std::string& text : remarks_on(story, story.packets.at(packet))) all += text + "; ";
  return all;
}

}  // namespace

TEST_CASE("trace story: what one end sends and the other sees is one packet") {
  TraceBuilder builder;
  builder.connected();
  builder.crossing(10, 100);
  builder.crossing(20, 100, 1, Operation::acknowledge);
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.packets.size() == 2);
  REQUIRE(story.connections.size() == 1);
  CHECK(story.connections[0].packets == 2);
  for (const Packet& packet : story.packets) {
    CHECK(packet.sent != kNowhere);
    CHECK(packet.arrived != kNowhere);
  }
  CHECK(story.packets[0].from_first != story.packets[1].from_first);
  const At a = story.find_qp(0, TraceBuilder::kA);
  REQUIRE(a != kNowhere);
  CHECK(story.qps[story.qps[a].peer].qpn == TraceBuilder::kB);
  CHECK(story.qps[a].type == verbs::qp_type::kRc);
}

TEST_CASE("trace story: a lost packet, and why it is sent again") {
  TraceBuilder builder;
  builder.connected();
  builder.packet(10, Kind::packet_sent, 100);
  Record& lost = builder.packet(10, Kind::packet_lost, 100);
  lost.program = 1;
  lost.qpn = 0;  // the network does not know who sent it
  lost.cause = Cause::dropped;
  Record& timeout = builder.add(5000, Kind::ack_timeout);
  timeout.psn = 100;
  timeout.count = 2;
  timeout.detail = 7;
  builder.crossing(5001, 100);
  auto& again = builder.records()[builder.records().size() - 2];
  again.flags = flag::kRetransmission;
  again.cause = Cause::ack_timeout;
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.packets.size() == 2);
  CHECK(story.packets[0].arrived == kNowhere);
  CHECK(remarks(story, 0) == "lost: loss=1% (dropped); ");
  CHECK(story.packets[1].arrived != kNowhere);
  CHECK(remarks(story, 1) == "sent again: timeout 2 of 7; ");
}

TEST_CASE("trace story: a NAK names the rule that drew it") {
  TraceBuilder builder;
  builder.connected();
  builder.crossing(10, 100, 0, Operation::write_only);
  Record& refused = builder.packet(11, Kind::packet_refused, 100, 1, Operation::write_only);
  refused.program = 1;
  Record& nak = builder.add(11, Kind::nak_sent, 1);
  nak.psn = 100;
  nak.code = 0x62;
  builder.crossing(12, 100, 1, Operation::acknowledge);
  for (auto i = builder.records().size() - 2; i < builder.records().size(); ++i)
    builder.records()[i].code = 0x62;
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.packets.size() == 2);
  CHECK(remarks(story, 0) == "draws NAK: remote access error, by rule bad_rkey; ");
  CHECK(remarks(story, 1) == "because of rule bad_rkey; ");
}

TEST_CASE("trace story: copies, corruption, and what one end alone has seen") {
  TraceBuilder builder;
  builder.connected();
  builder.crossing(10, 100);
  builder.records().push_back(builder.records().back());  // it comes twice
  builder.packet(20, Kind::packet_sent, 101);
  builder.packet(20, Kind::packet_lost, 101).cause = Cause::corrupted;
  Record& dropped = builder.packet(21, Kind::packet_dropped, 101, 1);
  dropped.peer_qpn = 0;
  dropped.peer_device = kNoDevice;
  dropped.cause = Cause::bad_icrc;
  Record& alone = builder.packet(30, Kind::packet_received, 7, 1);
  alone.peer_qpn = 0x99;
  alone.peer_device = kNoDevice;
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.packets.size() == 4);
  CHECK(story.packets[1].is_copy);
  CHECK(story.packets[2].lost != kNowhere);
  CHECK(story.packets[2].arrived != kNowhere);
  CHECK_THAT(remarks(story, 2), Contains("corrupted: ") && Contains("dropped: bad icrc"));
  CHECK(story.packets[3].sent == kNowhere);
  CHECK(story.find_qp(kNoDevice, 0x99) != kNowhere);
}

TEST_CASE("trace story: a packet from elsewhere that is lost on its way here") {
  TraceBuilder builder;
  builder.connected();
  Record& lost = builder.packet(10, Kind::packet_lost, 100, 1);
  lost.flags = flag::kArriving;
  lost.program = 1;
  lost.peer_qpn = 0;
  lost.peer_device = kNoDevice;
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.packets.size() == 1);
  const Packet& packet = story.packets[0];
  REQUIRE(packet.connection != kNowhere);
  const Connection& connection = story.connections[packet.connection];
  CHECK(connection.ends[packet.from_first ? 1 : 0] == story.find_qp(1, TraceBuilder::kB));
  CHECK(connection.ends[packet.from_first ? 0 : 1] == story.find_qp(0, TraceBuilder::kA));
}

TEST_CASE("trace story: a packet that is seen before it is sent, by other clocks, is still one") {
  TraceBuilder builder;
  builder.connected();
  builder.crossing(10, 100);
  std::swap(builder.records()[builder.records().size() - 1].time_ns,
            builder.records()[builder.records().size() - 2].time_ns);
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.packets.size() == 1);
  CHECK(story.packets[0].sent != kNowhere);
  CHECK(story.packets[0].arrived != kNowhere);
}

TEST_CASE("trace story: requests from post to poll, by number or by wr_id") {
  TraceBuilder builder;
  builder.connected();
  for (const Kind kind : {Kind::posted, Kind::taken})
    for (const uint32_t number : {1, 2}) builder.request(10, kind, number);
  builder.crossing(11, 100);
  builder.records()[builder.records().size() - 2].request = 2;
  builder.add(12, Kind::acknowledged).request = 2;
  builder.request(13, Kind::completion_pushed, 2);
  builder.request(14, Kind::completion_polled, 2).request = 0;
  builder.request(15, Kind::posted, 1).flags = flag::kReceiveQueue;
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.requests.size() == 3);
  const Request& unsignaled = story.requests[0];
  CHECK(unsignaled.acknowledged != kNowhere);
  CHECK(unsignaled.pushed == kNowhere);
  const Request& signaled = story.requests[1];
  CHECK(signaled.taken != kNowhere);
  CHECK(signaled.pushed != kNowhere);
  CHECK(signaled.polled != kNowhere);
  CHECK(signaled.packets == std::vector<At>{0});
  CHECK(story.packets[0].request == 1);
  CHECK(story.requests[2].is_receive);
}

TEST_CASE("trace story: a shared receive belongs to the QP that has taken it") {
  TraceBuilder builder;
  builder.connected();
  Record& posted = builder.request(10, Kind::posted, 1, 1);
  posted.qpn = 0;
  posted.flags = flag::kReceiveQueue | flag::kShared;
  Record& pushed = builder.request(20, Kind::completion_pushed, 1, 1);
  pushed.flags = flag::kReceiveQueue | flag::kShared;
  const Trace trace = builder.read();
  const Story story = tell(trace);
  REQUIRE(story.requests.size() == 1);
  CHECK(story.requests[0].qp == story.find_qp(1, TraceBuilder::kB));
  CHECK(story.requests[0].posted != kNowhere);
}

TEST_CASE("trace text: the queues of a QP, where they are known") {
  TraceBuilder builder;
  Record& created = builder.add(1, Kind::qp_created);
  created.code = verbs::qp_type::kRc;
  created.count = 3;
  created.length_bytes = 4;
  created.detail = 9;
  created.flags = flag::kShared;
  builder.add(2, Kind::qp_created, 1).code = verbs::qp_type::kRc;
  builder.request(10, Kind::completion_pushed, 1).count = 3;
  builder.request(11, Kind::completion_pushed, 2);
  std::ostringstream out;
  show_text(builder.read(), {}, out);
  CHECK_THAT(out.str(),
             Contains("QP 0x11 qp created: RC, CQ 3 for sends, CQ 4 for receives, SRQ 9\n") &&
                 Contains("QP 0x12 qp created: RC\n") && Contains("request 1, 64 B, CQ 3\n") &&
                 Contains("request 2, 64 B\n"));
}

TEST_CASE("trace text: where bytes were placed, where that is known") {
  TraceBuilder builder;
  Record& known = builder.add(1, Kind::data_placed);
  known.psn = 100;
  known.length_bytes = 64;
  known.flags = flag::kHasReth;  // and the address is 0, as that of a zero-based region
  Record& unknown = builder.add(2, Kind::data_placed);
  unknown.psn = 101;
  unknown.length_bytes = 64;
  std::ostringstream out;
  show_text(builder.read(), {}, out);
  CHECK_THAT(out.str(), Contains("data placed: PSN 100, 64 B at 0x0\n") &&
                            Contains("data placed: PSN 101, 64 B\n"));
}

TEST_CASE("trace text: a line for each event") {
  TraceBuilder builder;
  builder.connected();
  builder.request(10, Kind::posted, 1);
  builder.crossing(11, 100);
  std::ostringstream out;
  show_text(builder.read(), {}, out);
  CHECK_THAT(out.str(),
             Contains("0.000010000 rocemu0 QP 0x11 sender (100) posted: SEND, wr_id 0x101, "
                      "request 1, 64 B\n") &&
                 Contains("0.000011000 rocemu0 QP 0x11 packet sent: SEND_ONLY, PSN 100, "
                          "64 B, to QP 0x12 of rocemu1\n"));
  std::ostringstream one;
  show_text(builder.read(), {.qpn = 0x13}, one);
  CHECK(one.str().empty());
}

TEST_CASE("trace ladder: one page with everything in it, and nothing of a file ends its script") {
  TraceBuilder builder;
  builder.name(Table::device, 0, "</script><script>alert(1)</script>");
  builder.connected();
  builder.request(10, Kind::posted, 1);
  builder.crossing(11, 100);
  const Trace trace = builder.read();
  std::ostringstream out;
  show_ladder(tell(trace), {.title = "a <trace>"}, out);
  const std::string page = out.str();
  CHECK_THAT(page, !Contains("alert(1)</script>") && Contains("SEND_ONLY  100  64 B") &&
                       !Contains("http://") && !Contains("https://") && !Contains("<!--"));
}

TEST_CASE("trace ladder: what is beyond its bound is left out, and told") {
  TraceBuilder builder;
  builder.connected();
  for (uint32_t i = 0; i < 100; ++i) builder.crossing(10 + 2 * i, i);
  const Trace trace = builder.read();
  std::ostringstream out;
  show_ladder(tell(trace), {.title = "", .most_records = 20}, out);
  CHECK_THAT(out.str(), Contains("packets behind these are left out"));
}

TEST_CASE("trace story: any records whatever are told without a crash") {
  Random random(20);
  constexpr uint8_t kKinds[] = {2,  3,  4,  10, 11, 12, 13, 14, 20, 21, 22, 23,
                                24, 30, 31, 32, 33, 34, 40, 41, 42, 43, 44, 45,
                                46, 47, 48, 49, 50, 51, 52, 53, 54, 60, 61, 70};
  for (int round = 0; round < 20; ++round) {
    TraceBuilder builder;
    for (int i = 0; i < 3000; ++i) {
      Record& r = builder.add(random.next() % 100, Kind::lost);
      r.kind = Kind{kKinds[random.next() % std::size(kKinds)]};
      r.cause = static_cast<Cause>(random.next() % 90);
      r.qpn = static_cast<uint32_t>(random.next() % 4);
      r.peer_qpn = static_cast<uint32_t>(random.next() % 4);
      r.psn = static_cast<uint32_t>(random.next() % 3);
      r.request = static_cast<uint32_t>(random.next() % 5 == 0 ? random.next() : random.next() % 5);
      r.wr_id = random.next() % 3;
      r.value = random.next();
      r.opcode = static_cast<uint8_t>(random.next() % 2 == 0 ? random.next() % 3 : random.next());
      r.code = static_cast<uint8_t>(random.next());
      r.flags = static_cast<uint16_t>(random.next());
      r.length_bytes = static_cast<uint32_t>(random.next());
      r.count = static_cast<uint32_t>(random.next());
      r.detail = static_cast<uint32_t>(random.next());
      r.device = static_cast<uint16_t>(random.next() % 4 == 0 ? kNoDevice : random.next() % 3);
      r.peer_device = static_cast<uint16_t>(random.next() % 4 == 0 ? kNoDevice : random.next() % 3);
      r.program = static_cast<uint16_t>(random.next() % 3 == 0 ? random.next() : random.next() % 3);
    }
    const Trace trace = builder.read();
    const Story story = tell(trace);
    std::ostringstream out;
    show_text(trace, {}, out);
    show_ladder(story, {.title = "hostile"}, out);
    show_ladder(story, {.title = "hostile", .selection = {.qpn = 2}, .most_records = 100}, out);
    CHECK(out.str().size() > 1000);
  }
}

}  // namespace rocemu::trace
