// What other programs read of a trace, and what is said of a QP's time.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/random.h"
#include "emulator/trace/show/pcapng.h"
#include "emulator/trace/show/perfetto.h"
#include "emulator/trace/show/story.h"
#include "emulator/trace/show/text.h"
#include "emulator/trace/show/why.h"
#include "emulator/wire/packet.h"
#include "tests/unit/trace/pcapng_reader.h"
#include "tests/unit/trace/trace_builder.h"

namespace rocemu::trace {

namespace {

using Catch::Contains;
using Catch::StartsWith;
using Json = nlohmann::json;
using Operation = wire::Operation;

// Requests that overlap, one of which is lost once and sent again after a timeout.
TraceBuilder story_of_a_loss() {
  TraceBuilder builder;
  builder.connected();
  for (uint32_t number = 1; number <= 3; ++number) {
    builder.request(10 * number, Kind::posted, number);
    builder.request(10 * number + 1, Kind::taken, number);
  }
  builder.packet(40, Kind::packet_sent, 100).request = 1;
  Record& lost = builder.packet(40, Kind::packet_lost, 100);
  lost.program = 1;
  lost.cause = Cause::dropped;
  Record& timeout = builder.add(1040, Kind::ack_timeout);
  timeout.psn = 100;
  timeout.count = 1;
  timeout.detail = 7;
  for (uint32_t i = 0; i < 3; ++i) {
    builder.crossing(1050 + 5 * i, 100 + i);
    Record& sent = builder.records()[builder.records().size() - 2];
    sent.request = i + 1;
    if (i > 0) continue;
    sent.flags = flag::kRetransmission;
    sent.cause = Cause::ack_timeout;
  }
  Record& placed = builder.add(1064, Kind::data_placed, 1);
  placed.psn = 102;
  placed.length_bytes = 64;
  builder.crossing(1070, 102, 1, Operation::acknowledge);
  builder.add(1071, Kind::acknowledged).request = 3;
  for (uint32_t number = 1; number <= 3; ++number) {
    builder.request(1072, Kind::completion_pushed, number);
    builder.request(1100 + number, Kind::completion_polled, number);
  }
  Record& counter = builder.add(1200, Kind::counter);
  counter.qpn = 0;
  counter.program = 1;
  counter.value = 5;
  return builder;
}

// What each event of the format has to have (Trace Event Format, "Event Descriptions").
void check_fields(const Json& event) {
  const std::string phase = event.at("ph");
  CHECK(event.at("name").is_string());
  CHECK(event.at("pid").is_number_integer());
  if (phase == "M") {
    CHECK(event.at("args").at("name").is_string());
    CHECK(event.contains("tid") == (event.at("name") == "thread_name"));
    return;
  }
  CHECK(event.at("tid").is_number_integer());
  CHECK(event.at("ts").get<double>() >= 0);
  if (phase == "X") CHECK(event.at("dur").get<double>() >= 0);
  if (phase == "C")
    for (const Json& value : event.at("args")) CHECK(value.is_number());
  if (phase == "i") CHECK(event.at("s") == "t");
  if (phase == "b" || phase == "e" || phase == "s" || phase == "f") {
    CHECK(event.at("cat").is_string());
    CHECK(event.contains("id"));
  }
}

// The rules of the format: sorted, and what begins on a track ends there, within what is around it.
void check_events(const Json& trace) {
  double last = -1;
  std::map<std::pair<int, int>, std::vector<double>> open;  // ends of slices, by track
  std::map<std::string, int> begun, flows;
  for (const Json& event : trace["traceEvents"]) {
    check_fields(event);
    const std::string phase = event["ph"];
    if (phase == "M") continue;
    const double at = event["ts"];
    CHECK(at >= last);
    last = at;
    if (phase == "X") {
      auto& ends = open[{event["pid"], event["tid"]}];
      const double end = at + event["dur"].get<double>();
      while (!ends.empty() && ends.back() <= at + 1e-6) ends.pop_back();
      if (!ends.empty()) CHECK(end <= ends.back() + 1e-6);
      ends.push_back(end);
    }
    if (phase == "b" || phase == "e") begun[event["id"].dump()] += phase == "b" ? 1 : -1;
    if (phase == "s" || phase == "f") flows[event["id"].dump()] += phase == "s" ? 1 : -1;
    if (phase == "f") CHECK(flows[event["id"].dump()] == 0);
  }
  for (const auto& [id, count] : begun) CHECK(count == 0);
  for (const auto& [id, count] : flows) CHECK(count == 0);
}

// By the arrow's ends: the name of the slice that it leads to, or which it comes from.
std::vector<std::string> slices_at(const Json& trace, const std::string& phase) {
  std::vector<std::string> names;
  for (const Json& flow : trace["traceEvents"]) {
    if (flow["ph"] != phase) continue;
    const double at = flow["ts"];
    std::string name = "none";
    for (const Json& slice : trace["traceEvents"])
      if (slice["ph"] == "X" && slice["pid"] == flow["pid"] && slice["tid"] == flow["tid"] &&
          slice["ts"].get<double>() <= at &&
          at <= slice["ts"].get<double>() + slice["dur"].get<double>())
        name = slice["name"];
    names.push_back(name);
  }
  return names;
}

Json perfetto(const Trace& trace) {
  std::ostringstream out;
  show_perfetto(tell(trace), {}, out);
  return Json::parse(out.str());
}

}  // namespace

TEST_CASE("trace perfetto: valid, sorted, and all that begins ends") {
  const Trace trace = story_of_a_loss().read();
  const Json json = perfetto(trace);
  check_events(json);
  const std::string text = json.dump();
  CHECK_THAT(text, Contains("\"rocemu0\"") && Contains("\"sender (100)\"") &&
                       Contains("sent again: timeout 1 of 7") && Contains("out_of_buffer") &&
                       Contains("QP 0x11 outstanding") && Contains("QP 0x12 packets in"));
  size_t requests = 0, flows = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "X" && event["args"].contains("until it was polled")) ++requests;
    if (event["ph"] == "s") ++flows;
  }
  CHECK(requests == 3);
  CHECK(flows == 3);
  const std::vector<std::string> sent(3, "SEND_ONLY");
  CHECK(slices_at(json, "s") == sent);
  // To what is placed, where that is known, and else to the packet's arrival.
  CHECK(slices_at(json, "f") == std::vector<std::string>{"SEND_ONLY", "SEND_ONLY", "64 B"});
}

TEST_CASE("trace perfetto: more requests at a time than there are tracks") {
  TraceBuilder builder;
  builder.connected();
  for (uint32_t i = 1; i <= 100; ++i) builder.request(i, Kind::posted, i);
  for (uint32_t i = 1; i <= 100; ++i) builder.request(200 + i, Kind::completion_pushed, i);
  const Trace trace = builder.read();
  check_events(perfetto(trace));
}

TEST_CASE("trace pcapng: frames as they were, with what is known of them as comments") {
  const Trace trace = story_of_a_loss().read();
  std::ostringstream out;
  show_pcapng(tell(trace), {}, out);
  const std::vector<SeenPacket> packets = read_pcapng(out.str());
  REQUIRE(packets.size() == 5);
  CHECK_THAT(packets[0].comment,
             Contains("lost: loss=1% (dropped)") && Contains("QP 0x11 is of sender (100)"));
  CHECK_THAT(packets[1].comment, Contains("sent again: timeout 1 of 7"));
  CHECK(packets[0].unix_ns == 1'700'000'000'000'040'000);
  CHECK(packets[0].whole_bytes == 14 + 20 + 8 + 12 + 64 + 4);
  for (const SeenPacket& seen : packets) CHECK(seen.bytes.size() == seen.whole_bytes);
  // It is a frame that the NIC would take.
  std::vector<std::byte> frame(packets[0].whole_bytes);
  std::memcpy(frame.data(), packets[0].bytes.data(), packets[0].bytes.size());
  wire::Packet packet;
  REQUIRE(wire::parse_frame(frame, packet) == wire::ParseError::none);
  CHECK(packet.bth.psn.value() == 100);
  CHECK(packet.bth.destination_qp.value == TraceBuilder::kB);
  CHECK(packet.bth.opcode == static_cast<uint8_t>(Operation::send_only));
}

TEST_CASE("trace why: the time of a QP, and each moment counts once") {
  const Trace trace = story_of_a_loss().read();
  const Story story = tell(trace);
  const TimeSpent spent = time_spent(story, story.find_qp(0, TraceBuilder::kA));
  CHECK(spent.whole_ns == 1093'000);
  CHECK(spent[Reason::timeout] == 1000'000);
  CHECK(spent[Reason::poll] == 31'000);
  uint64_t all = 0;
  for (const uint64_t ns : spent.ns) all += ns;
  CHECK(all == spent.whole_ns);
  std::ostringstream out;
  CHECK(tell_why(story, {.qpn = TraceBuilder::kA}, out));
  CHECK_THAT(out.str(), Contains("QP 0x11 of rocemu0 (RC, sender (100)), to QP 0x12 of rocemu1") &&
                            Contains("91 % of it, 1 ms, an ACK timeout ran") &&
                            Contains("a smaller timeout") && Contains("1 of them lost"));
  CHECK(!tell_why(story, {.qpn = 0x77}, out));
}

TEST_CASE("trace why: waiting for receives, and for the window") {
  TraceBuilder builder;
  builder.connected();
  builder.request(0, Kind::posted, 1);
  builder.request(0, Kind::taken, 1);
  builder.crossing(1, 100);
  builder.add(10, Kind::rnr_received).value = 500'000;
  builder.crossing(11, 101);  // was on its way to the port
  Record& again = builder.packet(510, Kind::packet_sent, 100);
  again.flags = flag::kRetransmission;
  again.cause = Cause::rnr_nak;
  builder.add(520, Kind::waits).cause = Cause::window;
  builder.crossing(620, 101);
  builder.request(630, Kind::completion_pushed, 1);
  const Trace trace = builder.read();
  const Story story = tell(trace);
  const TimeSpent spent = time_spent(story, story.find_qp(0, TraceBuilder::kA));
  CHECK(spent[Reason::rnr] == 500'000);
  CHECK(spent[Reason::window] == 100'000);
  CHECK(spent[Reason::wire] == 30'000);
}

TEST_CASE("trace: what is shown can be of one end, though both have the same number") {
  TraceBuilder builder = story_of_a_loss();
  for (Record& record : builder.records()) {
    if (record.kind == Kind::name) continue;
    if (record.qpn != 0) record.qpn = TraceBuilder::kA;
    if (record.peer_qpn != 0) record.peer_qpn = TraceBuilder::kA;
  }
  const Trace trace = builder.read();
  const Story story = tell(trace);
  std::ostringstream both, one, text, poster, picture;
  CHECK(tell_why(story, {.qpn = TraceBuilder::kA}, both));
  CHECK_THAT(both.str(), Contains("QP 0x11 of rocemu0 (RC, sender (100)), to") &&
                             Contains("QP 0x11 of rocemu1 (RC, receiver (200)), to"));
  CHECK(tell_why(story, {.qpn = TraceBuilder::kA, .device = 1}, one));
  CHECK_THAT(one.str(), StartsWith("QP 0x11 of rocemu1 (RC, receiver (200)), to") &&
                            !Contains("\nQP 0x11 of rocemu0"));
  CHECK(!tell_why(story, {.device = 1, .programs = {0}}, one));
  show_text(trace, {.device = 1}, text);
  CHECK_THAT(text.str(), Contains(" rocemu1 QP 0x11 packet received") && !Contains(" rocemu0 QP"));
  show_text(trace, {.programs = {0}}, poster);
  CHECK_THAT(poster.str(),
             Contains(" rocemu0 QP 0x11 ack timeout") && !Contains(" rocemu1 QP 0x11 packet"));
  show_perfetto(story, {.device = 0}, picture);
  CHECK_THAT(picture.str(), Contains("QP 0x11 requests") && Contains("out_of_buffer"));
  std::ostringstream other;
  show_perfetto(story, {.device = 1}, other);
  CHECK_THAT(other.str(), !Contains("\"sender (100)\"") && !Contains("out_of_buffer"));
}

TEST_CASE("trace: waits end with the next packet, or when they are said to") {
  TraceBuilder builder;
  builder.connected();
  builder.request(0, Kind::posted, 1);
  builder.add(10, Kind::waits).cause = Cause::rd_atomics;
  builder.crossing(60, 100);
  builder.add(100, Kind::waits).cause = Cause::earlier;
  builder.add(130, Kind::waits);
  builder.add(200, Kind::waits).cause = Cause::window;
  builder.add(240, Kind::waits).cause = Cause::pace;
  builder.request(250, Kind::completion_pushed, 1);
  const Trace trace = builder.read();
  const Story story = tell(trace);
  const TimeSpent spent = time_spent(story, story.find_qp(0, TraceBuilder::kA));
  CHECK(spent[Reason::rd_atomics] == 50'000);
  CHECK(spent[Reason::earlier] == 30'000);
  CHECK(spent[Reason::window] == 40'000);
  CHECK(spent[Reason::pace] == 10'000);
  const Json json = perfetto(trace);
  check_events(json);
  std::map<std::string, double> slices;
  for (const Json& event : json["traceEvents"])
    if (event["ph"] == "X") slices[event["name"]] = event["dur"];
  CHECK(slices["rd atomics"] == 50);
  CHECK(slices["earlier requests"] == 30);
  CHECK(slices["window"] == 40);
  std::ostringstream text;
  show_text(trace, {}, text);
  CHECK_THAT(text.str(), Contains("QP 0x11 waits, rd atomics") && Contains("waits: no more"));
}

TEST_CASE("trace: messages of the connection manager are shown") {
  TraceBuilder builder;
  Record& req = builder.add(10, Kind::cm_sent);
  req.opcode = 0x10;
  req.value = uint64_t{7} << 32;
  req.psn = 100;
  req.peer_device = 1;
  Record& rej = builder.add(20, Kind::cm_received);
  rej.opcode = 0x12;
  rej.code = 28;
  rej.qpn = 0;
  rej.peer_device = 1;
  const Trace trace = builder.read();
  std::ostringstream text;
  show_text(trace, {}, text);
  CHECK_THAT(text.str(),
             Contains("cm sent: REQ, ids 0x7 and 0x0, PSN 100, to rocemu1") &&
                 Contains("cm received: REJ, reason 28, ids 0x0 and 0x0, from rocemu1"));
  CHECK_THAT(perfetto(trace).dump(),
             Contains("connection manager") && Contains("REQ") && Contains("REJ"));
}

TEST_CASE("trace: any records whatever are shown without a crash") {
  Random random(21);
  constexpr uint8_t kKinds[] = {10, 11, 12, 14, 20, 21, 22, 23, 24, 30, 31, 32, 33, 34, 40,
                                41, 42, 43, 44, 45, 46, 47, 50, 51, 52, 53, 54, 60, 70};
  for (int round = 0; round < 10; ++round) {
    TraceBuilder builder;
    for (int i = 0; i < 2000; ++i) {
      Record& r = builder.add(random.below(100), Kind{kKinds[random.below(std::size(kKinds))]});
      r.cause = static_cast<Cause>(random.below(90));
      r.qpn = static_cast<uint32_t>(random.below(4));
      r.peer_qpn = static_cast<uint32_t>(random.below(4));
      r.psn = static_cast<uint32_t>(random.below(3));
      r.request = static_cast<uint32_t>(random.below(5));
      r.value = random.next();
      r.opcode = static_cast<uint8_t>(random.below(2) == 0 ? random.below(32) : random.next());
      r.code = static_cast<uint8_t>(random.next());
      r.flags = static_cast<uint16_t>(random.next());
      r.length_bytes = static_cast<uint32_t>(random.next());
      r.count = static_cast<uint32_t>(random.next());
      r.detail = static_cast<uint32_t>(random.next());
      r.device = static_cast<uint16_t>(random.below(4) == 0 ? kNoDevice : random.below(3));
      r.peer_device = static_cast<uint16_t>(random.below(4) == 0 ? kNoDevice : random.below(3));
      r.program = static_cast<uint16_t>(random.below(3) == 0 ? kNoProgram : random.below(3));
      if (round >= 5 && random.below(100) == 0) r.time_ns = random.next();
    }
    const Trace trace = builder.read();
    const Story story = tell(trace);
    const Json json = perfetto(trace);
    // Doubles cannot tell times of centuries apart.
    if (round < 5) check_events(json);
    std::ostringstream out;
    show_pcapng(story, {}, out);
    read_pcapng(out.str());
    for (uint32_t qpn = 0; qpn < 4; ++qpn) tell_why(story, {.qpn = qpn}, out);
  }
}

}  // namespace rocemu::trace
