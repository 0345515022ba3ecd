// Marks of congestion on arriving packets, and the CNPs that tell their sender of them; and what a
// sender with an algorithm does with those.
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <set>

#include "emulator/transport/notification_point.h"
#include "emulator/wire/build.h"
#include "emulator/wire/icrc.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

constexpr uint8_t kEct0 = 2;
constexpr uint8_t kCe = 3;

// A frame that was seen, with its bytes.
struct Seen {
  uint64_t now_ns;
  bool from_a;
  std::vector<std::byte> bytes;
  wire::Packet packet() const {
    wire::Packet packet;
    REQUIRE(wire::parse_frame(bytes, packet) == wire::ParseError::none);
    REQUIRE(wire::icrc_matches(packet.l3));
    return packet;
  }
  bool is_cnp() const { return packet().bth.opcode == wire::kCnpOpcode; }
};

// A pair on a network that marks every frame that allows it and for which `marks` is true.
class MarkedPair : public Pair {
 public:
  explicit MarkedPair(const PairOptions& options) : Pair(options) {
    fabric.observer = [this](const sim::FrameRecord& record) {
      if (record.kind != sim::FrameRecord::Kind::sent) return true;
      frames.push_back(
          {record.now_ns, record.from == 0, {record.frame.begin(), record.frame.end()}});
      const Seen& seen = frames.back();
      if ((seen.packet().ip.traffic_class & 3) != kEct0 || !marks || !marks(seen)) return true;
      fabric.at(record.now_ns + 1, [this, marked = with_ce(seen), from_a = seen.from_a] {
        (from_a ? b : a).node().receive(network::SharedFrame(marked));
      });
      return false;
    };
  }

  std::vector<Seen> cnps() const {
    std::vector<Seen> found;
    for (const Seen& frame : frames)
      if (frame.is_cnp()) found.push_back(frame);
    return found;
  }

  std::function<bool(const Seen&)> marks;
  std::deque<Seen> frames;

 private:
  // As a switch does it: the ICRC stays as it is.
  static std::vector<std::byte> with_ce(const Seen& seen) {
    const wire::Packet packet = seen.packet();
    wire::Ip ip = packet.ip;
    ip.traffic_class |= kCe;
    auto frame =
        wire::build_frame(packet.ethernet, ip, packet.udp, packet.bth, packet.ext, packet.payload);
    REQUIRE(frame.size() == seen.bytes.size());
    std::copy(seen.bytes.end() - 4, seen.bytes.end(), frame.end() - 4);
    return frame;
  }
};

// The rates that CNPs leave, as they are told.
struct HeardRates final : transport::Observer {
  void on_event(wire::Qpn, TraceEvent event, uint32_t value) noexcept override {
    if (event == TraceEvent::cnp_handled) kbps.push_back(value);
  }
  std::vector<uint32_t> kbps;
};

congestion::Settings settings(std::string_view text) {
  const auto parsed = congestion::parse_settings(text);
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  return *parsed.settings;
}

PairOptions with(std::string_view text) {
  PairOptions options;
  options.node.limits.congestion = settings(text);
  options.retry_count = 7;
  options.timeout = 14;
  return options;
}

constexpr auto kAlways = [](const Seen&) { return true; };

}  // namespace

TEST_CASE("Notification point: one CNP for each flow and interval") {
  NotificationPoint point({.min_time_between_cnps_ns = 50'000});
  const NotificationPoint::FlowKey one{{}, wire::Qpn{1}, wire::Qpn{9}};
  const NotificationPoint::FlowKey other{{}, wire::Qpn{2}, wire::Qpn{9}};
  CHECK(point.on_marked(1000, one));
  CHECK_FALSE(point.on_marked(1000, one));
  CHECK(point.on_marked(1001, other));
  CHECK_FALSE(point.on_marked(50'999, one));
  CHECK(point.on_marked(51'000, one));
  CHECK_FALSE(point.on_marked(100'999, one));
  CHECK(point.on_marked(500'000, one));
}

TEST_CASE("Notification point: what it remembers is bounded, and those of the past make room") {
  NotificationPoint point({.min_time_between_cnps_ns = 1000});
  uint32_t answered = 0;
  for (uint32_t i = 0; i < 10'000; ++i)
    answered += point.on_marked(5, {{}, wire::Qpn{i}, wire::Qpn{9}});
  CHECK(answered == 4096);
  CHECK(point.on_marked(1005, {{}, wire::Qpn{9'999}, wire::Qpn{9}}));
}

TEST_CASE("What leaves with data is ECT(0) when an algorithm wants it, and else as it was") {
  const bool wanted = GENERATE(false, true);
  PairOptions options = with(wanted ? "dcqcn" : "none");
  options.node.ipv6 = GENERATE(false, true);
  MarkedPair pair(options);
  const Buffer near = pair.a.buffer(3000, 1);
  const Buffer far = pair.b.buffer(3000, 2);
  pair.a.post(write(near, far));
  pair.a.post(read(near, far));
  pair.drive();
  REQUIRE(pair.a.send_cq.completions.size() == 2);
  for (const Seen& frame : pair.frames) {
    const wire::Packet packet = frame.packet();
    CHECK(packet.ip.traffic_class == (wanted && !packet.payload.empty() ? kEct0 : 0));
  }
}

TEST_CASE("A program's own ECN field is left alone") {
  const std::byte before{0x45};
  std::vector<std::byte> l3(20, before);
  l3[1] = std::byte{0x01};
  wire::mark_ecn_capable(l3.data());
  CHECK(l3[1] == std::byte{0x01});
}

TEST_CASE("A mark draws a CNP as annex A17 has it, whatever algorithm its receiver has") {
  PairOptions options = with("dcqcn:paper");
  options.node.ipv6 = GENERATE(false, true);
  MarkedPair pair(options);
  pair.marks = kAlways;
  HeardRates heard;
  pair.a.endpoint().set_observer(&heard);
  const uint64_t line_kbps = *pair.a.endpoint().allowed_rate_bps(pair.a.qpn) / 1000;
  const Buffer far = pair.b.buffer(1000);
  pair.a.post(write(pair.a.buffer(1000, 1), far));
  pair.drive();
  pair.a.endpoint().set_observer(nullptr);
  REQUIRE(heard.kbps.size() == 1);
  CHECK(heard.kbps[0] > 0);
  CHECK(heard.kbps[0] < line_kbps);
  REQUIRE(pair.cnps().size() == 1);
  const Seen seen = pair.cnps()[0];
  const wire::Packet cnp = seen.packet();
  CHECK_FALSE(seen.from_a);
  CHECK(cnp.bth.opcode == 0x81);
  CHECK(cnp.bth.becn);
  CHECK_FALSE(cnp.bth.fecn);
  CHECK(cnp.bth.destination_qp == pair.a.qpn);
  CHECK(cnp.bth.psn == Psn(0));
  CHECK_FALSE(cnp.bth.ack_request);
  CHECK(cnp.bth.pkey == wire::kDefaultPkey);
  CHECK(cnp.ip.traffic_class == 48 << 2);
  CHECK(std::vector(cnp.payload.begin(), cnp.payload.end()) == std::vector<std::byte>(16));
  CHECK(pair.b.counters()[TraceEvent::ecn_marked] == 1);
  CHECK(pair.b.counters()[TraceEvent::cnp_sent] == 1);
  CHECK(pair.a.counters()[TraceEvent::cnp_handled] == 1);
  CHECK(pair.a.counters()[TraceEvent::mismatched] == 0);
}

TEST_CASE("Over UC a mark draws a CNP to the peer, and over UD to the datagram's sender") {
  const Service service = GENERATE(Service::uc, Service::ud);
  PairOptions options = with("dcqcn");
  options.a_service = options.b_service = service;
  MarkedPair pair(options);
  const Buffer room = pair.b.buffer(1040);
  pair.b.receive(1, {room.sge()});
  const Buffer data = pair.a.buffer(1000, 1);
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(pair.transport, Operation::send_only);
  bth.destination_qp = pair.b.qpn;
  bth.pkey = wire::kDefaultPkey;
  bth.psn = Psn(100);
  const wire::ExtendedHeaders ext{.deth = {0x1234, pair.a.qpn}};
  pair.b.node().receive(network::SharedFrame(wire::build_frame(
      {.destination = MacAddress{2, 0, 0, 0, 0, 2}, .source = pair.a.node().mac(), .vlan_tci = {}},
      {.source = pair.a.attributes.path.local_gid,
       .destination = pair.b.attributes.path.local_gid,
       .traffic_class = kCe},
      {.source_port = 0xc123}, bth, ext, pair.a.bytes(data))));
  pair.drive();
  CHECK(pair.b.receive_cq.completions.size() == 1);
  REQUIRE(pair.cnps().size() == 1);
  CHECK(pair.cnps()[0].packet().bth.destination_qp == pair.a.qpn);
  CHECK(pair.b.counters()[TraceEvent::cnp_sent] == 1);
  // UC has a flow to slow down, UD has none.
  const TraceEvent heard =
      service == Service::uc ? TraceEvent::cnp_handled : TraceEvent::cnp_ignored;
  CHECK(pair.a.counters()[heard] == 1);
}

TEST_CASE("A CNP that no algorithm listens to is counted and changes nothing") {
  MarkedPair pair(with("none"));
  wire::Bth bth{.opcode = wire::kCnpOpcode, .becn = true};
  const std::vector<std::byte> reserved(wire::kCnpReservedBytes);
  pair.a.node().receive(network::SharedFrame(pair.frame_for(pair.a, bth, {}, reserved)));
  pair.drive();
  CHECK(pair.a.counters()[TraceEvent::cnp_ignored] == 1);
  CHECK(pair.a.counters()[TraceEvent::mismatched] == 0);
  CHECK(pair.a.state() == QpState::ready_to_send);
}

TEST_CASE("A CNP from an address that is not the peer's slows nothing") {
  MarkedPair pair(with("dcqcn"));
  wire::Bth bth{.opcode = wire::kCnpOpcode, .becn = true, .destination_qp = pair.a.qpn};
  const std::vector<std::byte> reserved(wire::kCnpReservedBytes);
  wire::Gid stranger = pair.b.attributes.path.local_gid;
  stranger.bytes[15] ^= 0x40;
  pair.a.node().receive(network::SharedFrame(
      wire::build_frame({}, {.source = stranger, .destination = pair.a.attributes.path.local_gid},
                        {}, bth, {}, reserved)));
  pair.drive();
  CHECK(pair.a.counters()[TraceEvent::cnp_ignored] == 1);
  CHECK(pair.a.counters()[TraceEvent::cnp_handled] == 0);
}

TEST_CASE("A QP whose algorithm cannot be made goes without") {
  PairOptions options;
  options.node.limits.congestion.kind =
      std::make_shared<congestion::AlgorithmKind>(congestion::AlgorithmKind{
          .name = "none at all", .make = [](std::span<const double>, const congestion::Flow&) {
            return std::unique_ptr<congestion::Algorithm>();
          }});
  MarkedPair pair(options);
  pair.a.post(write(pair.a.buffer(5000, 1), pair.b.buffer(5000)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.endpoint().report_flows(0, 10).empty());
}

TEST_CASE("CNPs come no faster than their interval, and what they slow is paced to its rate") {
  // 1 Gbit/s before the first CNP, half of it after.
  PairOptions options = with("dcqcn:paper,line_rate=1000,rpg_time_reset=100000,rpg_byte_reset=0");
  const bool by_read = GENERATE(false, true);
  MarkedPair pair(options);
  bool marked = false;
  pair.marks = [&](const Seen&) { return !std::exchange(marked, true); };
  const Buffer near = pair.a.buffer(1000 * 1024, 1);
  const Buffer far = pair.b.buffer(1000 * 1024, 2);
  pair.a.post(by_read ? read(near, far) : write(near, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK((pair.b.bytes(far) == pair.a.bytes(near)));
  REQUIRE(pair.cnps().size() == 1);
  const uint64_t from_ns = pair.cnps()[0].now_ns + 10 * kUs;
  uint64_t bits = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  for (const Seen& frame : pair.frames) {
    if (frame.from_a == by_read || frame.now_ns < from_ns || frame.packet().payload.empty())
      continue;
    if (first_ns == 0) first_ns = frame.now_ns;
    last_ns = frame.now_ns;
    bits += frame.bytes.size() * 8;
  }
  REQUIRE(last_ns > first_ns + 1 * kMs);
  const double rate_bps = static_cast<double>(bits) * 1e9 / static_cast<double>(last_ns - first_ns);
  CHECK(rate_bps == Approx(500e6).epsilon(0.03));
}

TEST_CASE("Marked for ever, a flow gets slower for every interval's CNP and still gets through") {
  PairOptions options = with("dcqcn:paper,line_rate=10000,rpg_min_rate=20");
  MarkedPair pair(options);
  pair.marks = kAlways;
  const Buffer near = pair.a.buffer(1500 * 1024, 1);
  const Buffer far = pair.b.buffer(1500 * 1024, 2);
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK((pair.b.bytes(far) == pair.a.bytes(near)));
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 0);
  const std::vector<Seen> cnps = pair.cnps();
  REQUIRE(cnps.size() > 5);
  for (size_t i = 1; i < cnps.size(); ++i) CHECK(cnps[i].now_ns >= cnps[i - 1].now_ns + 50 * kUs);
}

}  // namespace rocemu::transport_test
