// Path telemetry: what a responder sends back, and when a requester stops offering it.
#include <array>
#include <catch2/catch.hpp>

#include "emulator/transport/qp/telemetry_exchange.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/selective.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

std::vector<std::byte> record_of(unsigned room, unsigned passed) {
  std::vector<std::byte> record(telemetry_bytes(room));
  write_path_telemetry(record.data(), room);
  for (unsigned i = 0; i < passed; ++i)
    stamp_telemetry(record.data(), i, {i + 1, 10 * i, 100 * i, 1000});
  return record;
}

std::vector<std::byte> sent_back(std::vector<std::byte> record) {
  return_telemetry(record.data());
  return record;
}

// Keeps the telemetry of what b sends: empty for a frame without any.
struct Echoes {
  explicit Echoes(Pair& pair) {
    pair.fabric.observer = [this](const sim::FrameRecord& frame) {
      wire::Packet packet;
      if (frame.kind == sim::FrameRecord::Kind::sent && frame.from == 1) {
        REQUIRE(wire::parse_frame(frame.frame, packet) == wire::ParseError::none);
        CHECK(wire::icrc_matches(packet.l3));
        records.emplace_back(packet.telemetry.begin(), packet.telemetry.end());
      }
      return true;
    };
  }
  std::vector<std::vector<std::byte>> records;
};

void inject(Pair& pair, Operation operation, uint32_t psn, std::span<const std::byte> record,
            const wire::ExtendedHeaders& ext = {}, uint8_t reserved7 = 0) {
  const Host& from = pair.a;
  wire::Bth bth;
  bth.reserved7 = reserved7;
  bth.opcode = wire::bth_opcode(wire::Transport::rc, operation);
  bth.psn = Psn(psn);
  bth.ack_request = true;
  bth.destination_qp = pair.b.qpn;
  pair.b.node().receive(network::SharedFrame(wire::build_frame(
      {},
      {.source = from.attributes.path.local_gid, .destination = pair.b.attributes.path.local_gid},
      {.source_port = 0xc000}, bth, ext, {}, record)));
}

}  // namespace

TEST_CASE("A responder sends the newest telemetry back, once, with its next answer") {
  Pair pair;
  Echoes echoes(pair);
  for (uint64_t id = 1; id < 6; ++id) pair.b.receive(id, {});
  inject(pair, Operation::send_only, kPsn, record_of(5, 1));
  inject(pair, Operation::send_only, kPsn + 1, record_of(5, 2));
  pair.run_for(10 * kUs);
  inject(pair, Operation::send_only, kPsn + 2, {});
  pair.run_for(10 * kUs);
  inject(pair, Operation::send_only, kPsn + 3, record_of(0, 9));
  pair.drive();
  REQUIRE(echoes.records.size() == 3);
  CHECK(echoes.records[0] == sent_back(record_of(5, 2)));
  CHECK(echoes.records[1].empty());
  CHECK(echoes.records[2] == sent_back(record_of(0, 9)));
}

TEST_CASE("Telemetry goes back with NAKs and atomics too, and what comes back does not") {
  Pair pair;
  Echoes echoes(pair);
  const Buffer cell = pair.b.buffer(8);
  wire::ExtendedHeaders ext;
  ext.atomic = {cell.address, wire::RKey{cell.key}, 1, 0};
  inject(pair, Operation::fetch_add, kPsn, record_of(3, 3), ext);
  pair.run_for(10 * kUs);
  inject(pair, Operation::send_only, kPsn + 5, record_of(8, 8));
  pair.run_for(10 * kUs);
  pair.b.receive(1, {});
  inject(pair, Operation::send_only, kPsn + 1, sent_back(record_of(5, 5)));
  pair.drive();
  REQUIRE(echoes.records.size() == 3);
  CHECK(echoes.records[0] == sent_back(record_of(3, 3)));
  CHECK(echoes.records[1] == sent_back(record_of(8, 8)));
  CHECK(echoes.records[2].empty());
}

TEST_CASE("Telemetry goes back with selective NAKs") {
  PairOptions options;
  options.node.limits.recovery = Recovery::selective_repeat;
  Pair pair(options);
  Echoes echoes(pair);
  inject(pair, Operation::send_only, kPsn + 1, record_of(5, 2), {}, wire::selective::kUnderstood);
  pair.drive();
  REQUIRE(pair.b.counters()[TraceEvent::placed_ahead] == 1);
  REQUIRE(echoes.records.size() == 1);
  CHECK(echoes.records[0] == sent_back(record_of(5, 2)));
}

TEST_CASE("An offer ends after 16 answers without telemetry, or two ACK timeouts") {
  const congestion::Needs needs{.telemetry = true};
  std::array<std::byte, kMaxTelemetryBytes> place;
  TelemetryOffer unheard(needs);
  for (int i = 0; i < 40; ++i) unheard.on_answer({}, true);  // nothing was offered yet
  unheard.write(place.data());
  CHECK(unheard.bytes() == telemetry_bytes(5u));
  for (int i = 0; i < 40; ++i) unheard.on_answer({}, false);  // data of READs
  for (int i = 0; i < 15; ++i) unheard.on_answer({}, true);
  CHECK(unheard.bytes() != 0);
  unheard.on_answer({}, true);
  CHECK(unheard.bytes() == 0);
  TelemetryOffer lost(needs);
  lost.on_ack_timeout();
  CHECK(lost.bytes() != 0);
  lost.on_ack_timeout();
  CHECK(lost.bytes() == 0);
  // One that did not turn round is no agreement.
  TelemetryOffer odd(needs);
  odd.write(place.data());
  for (int i = 0; i < 16; ++i) odd.on_answer(record_of(5, 1), true);
  CHECK(odd.bytes() == 0);
  CHECK(TelemetryOffer({.hop_count = true}).bytes() == telemetry_bytes(0u));
  CHECK(TelemetryOffer({}).bytes() == 0);
}

TEST_CASE("An offer that was agreed on stays, and tells what the newest answer brought") {
  TelemetryOffer offer({.telemetry = true});
  const auto told = [&] {
    congestion::Acknowledgement heard;
    offer.tell(heard);
    return heard;
  };
  offer.on_answer(sent_back(record_of(5, 2)), true);
  CHECK(told().hops_passed == 2);
  REQUIRE(told().hops.size() == 2);
  CHECK(told().hops[1].timestamp_ns == 2);
  CHECK(told().hops[1].tx_bytes == 10);
  CHECK(told().hops[1].queue_bytes == 100);
  CHECK(told().hops[1].link_rate_bps == 1'000'000);
  const uint32_t path = told().path;
  offer.on_answer(sent_back(record_of(5, 3)), true);
  CHECK(told().path != path);
  // More hops than there is room for are counted, and not believed.
  offer.on_answer(sent_back(record_of(5, 6)), true);
  CHECK(told().hops.empty());
  CHECK(told().hops_passed == 6);
  for (int i = 0; i < 40; ++i) offer.on_answer({}, true);
  CHECK(told().hops_passed == 0);
  CHECK(offer.bytes() != 0);
}

TEST_CASE("Where packets with telemetry do not get through, two timeouts later those without do") {
  PairOptions options;
  options.retry_count = 7;
  options.node.limits.congestion = *congestion::parse_settings("hpcc").settings;
  Pair pair(options);
  unsigned with = 0;
  pair.fabric.observer = [&](const sim::FrameRecord& frame) {
    wire::Packet packet;
    if (frame.kind != sim::FrameRecord::Kind::sent) return true;
    REQUIRE(wire::parse_frame(frame.frame, packet) == wire::ParseError::none);
    with += !packet.telemetry.empty();
    return packet.telemetry.empty();
  };
  const Buffer near = pair.a.buffer(100 * 1024, 1);
  const Buffer far = pair.b.buffer(100 * 1024);
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK((pair.b.bytes(far) == pair.a.bytes(near)));
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 2);
  CHECK(with > 0);
}

TEST_CASE("The data of READs end no offer") {
  PairOptions options;
  options.mtu_bytes = 256;
  options.node.limits.congestion = *congestion::parse_settings("hpcc").settings;
  Pair pair(options);
  unsigned with = 0;
  pair.fabric.observer = [&](const sim::FrameRecord& frame) {
    wire::Packet packet;
    REQUIRE(wire::parse_frame(frame.frame, packet) == wire::ParseError::none);
    const bool sent = frame.kind == sim::FrameRecord::Kind::sent && frame.from == 0;
    with += sent && packet.operation() == Operation::write_only && !packet.telemetry.empty();
    // The first answer that might bear a record is lost: the READ's data come before any other.
    return frame.kind != sim::FrameRecord::Kind::sent || frame.from == 0 ||
           packet.operation() != Operation::acknowledge || with > 1;
  };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.a.post(read(pair.a.buffer(40 * 256), pair.b.buffer(40 * 256, 1)));
  pair.drive();
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  CHECK(with >= 2);
}

TEST_CASE("READs have no telemetry, and need none") {
  PairOptions options;
  options.node.limits.congestion = *congestion::parse_settings("hpcc").settings;
  Pair pair(options);
  const Buffer near = pair.a.buffer(50 * 1024);
  const Buffer far = pair.b.buffer(50 * 1024, 1);
  pair.fabric.observer = [&](const sim::FrameRecord& frame) {
    wire::Packet packet;
    REQUIRE(wire::parse_frame(frame.frame, packet) == wire::ParseError::none);
    CHECK(packet.telemetry.empty());
    return true;
  };
  pair.a.post(read(near, far));
  pair.drive();
  CHECK((pair.a.bytes(near) == pair.b.bytes(far)));
}

TEST_CASE("A port that carries no telemetry is offered none") {
  for (const bool carries : {true, false}) {
    PairOptions options;
    options.node.limits.congestion = *congestion::parse_settings("swift").settings;
    options.node.limits.port_carries_telemetry = carries;
    Pair pair(options);
    size_t records = 0;
    pair.fabric.observer = [&](const sim::FrameRecord& frame) {
      wire::Packet packet;
      REQUIRE(wire::parse_frame(frame.frame, packet) == wire::ParseError::none);
      records += !packet.telemetry.empty();
      return true;
    };
    pair.a.post(write(pair.a.buffer(100, 1), pair.b.buffer(100)));
    pair.drive();
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
    CHECK((records != 0) == carries);
  }
}

}  // namespace rocemu::transport_test
