// What a recorder makes of two connected QPs and a network that loses packets.
#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "emulator/trace/format/reader.h"
#include "emulator/trace/record/cm_record.h"
#include "emulator/trace/record/device_recorder.h"
#include "emulator/transport/responder/refusals.h"
#include "emulator/wire/build.h"
#include "emulator/wire/cm_message.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::trace {

namespace {

using namespace transport_test;

// Records both ends: device 0 is a's, 1 is b's.
class Recording final : public RecorderHost {
 public:
  explicit Recording(Pair& pair, Filter filter = {}) : pair_(pair) {
    for (uint16_t device = 0; device < 2; ++device) {
      rings_[device] = std::make_unique<Ring>(4096, Ring::WhenFull::lose_new);
      Host& end = device == 0 ? pair.a : pair.b;
      recorders_[device] =
          std::make_unique<DeviceRecorder>(device, *rings_[device], filter, *this, nullptr);
      recorders_[device]->add_known({.qpn = end.qpn,
                                     .state = end.state(),
                                     .peer_qpn = pair.peer_of(end).qpn,
                                     .peer_gid = end.attributes.path.remote_gid,
                                     .timers = {3, 3, 8},
                                     .min_rnr_timer = 5});
      end.endpoint().set_observer(recorders_[device].get());
    }
  }
  ~Recording() override {
    pair_.a.endpoint().set_observer(nullptr);
    pair_.b.endpoint().set_observer(nullptr);
  }

  // All of one end and kind until now.
  std::vector<Record> of(uint16_t device, Kind kind) {
    take();
    std::vector<Record> found;
    for (const Record& record : records_)
      if (record.device == device && record.kind == kind) found.push_back(record);
    return found;
  }
  std::vector<uint32_t> psns(uint16_t device, Kind kind) {
    std::vector<uint32_t> psns;
    for (const Record& record : of(device, kind)) psns.push_back(record.psn);
    return psns;
  }
  size_t count() {
    take();
    return records_.size();
  }
  DeviceRecorder& recorder(uint16_t device) { return *recorders_[device]; }

  TimeNs now() noexcept override { return pair_.fabric.now_ns(); }
  Owner owner_of(uint16_t device, wire::Qpn) noexcept override {
    return {device, device == 0 ? "client" : "server", 100u + device};
  }
  QpQueues queues_of(uint16_t device, wire::Qpn) noexcept override {
    if (device == 0) return {.send_cq = 3, .receive_cq = 4};
    return {.send_cq = 7, .receive_cq = 7, .srq = 9};
  }
  uint16_t device_of(const wire::Gid& gid) noexcept override {
    if (gid == pair_.a.attributes.path.local_gid) return 0;
    return gid == pair_.b.attributes.path.local_gid ? 1 : 2;
  }
  Cause explain_key(uint16_t device, wire::Qpn, uint32_t key, uint64_t address,
                    uint32_t length_bytes) noexcept override {
    explained = {device, key, address, length_bytes};
    return Cause::key_gone;
  }
  void on_half_full() noexcept override { take(); }
  void on_failure(uint16_t device, wire::Qpn) noexcept override { ++failures[device]; }

  std::array<int, 2> failures{};
  std::array<uint64_t, 4> explained{};  // what explain_key was asked

 private:
  void take() {
    for (const auto& ring : rings_)
      while (!ring->is_empty()) {
        const auto piece = ring->peek();
        for (Record record : piece) {
          CHECK(fault_of(record).empty());
          if (Record posted; take_posted(record, posted)) records_.push_back(posted);
          records_.push_back(record);
        }
        ring->release(piece.size());
      }
  }

  Pair& pair_;
  std::unique_ptr<Ring> rings_[2];
  std::unique_ptr<DeviceRecorder> recorders_[2];
  std::vector<Record> records_;
};

using Psns = std::vector<uint32_t>;

}  // namespace

TEST_CASE("trace recorder: a WRITE of three packets, the second of which is lost") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(3 * 1024, 1);
  const Buffer far = pair.b.buffer(3 * 1024);
  pair.lose = [lost = false](const Sent& frame) mutable {
    return frame.from_a && frame.psn == 101 && !std::exchange(lost, true);
  };
  pair.a.post(write(near, far, 77));
  pair.drive();

  for (const Kind kind : {Kind::posted, Kind::taken, Kind::completion_pushed}) {
    const auto found = trace.of(0, kind);
    REQUIRE(found.size() == 1);
    CHECK(found[0].wr_id == 77);
    CHECK(found[0].request == 1);
    CHECK(found[0].length_bytes == 3 * 1024);
  }
  CHECK(trace.of(0, Kind::taken)[0].opcode == verbs::wr_opcode::kRdmaWrite);
  CHECK(trace.of(0, Kind::taken)[0].value == far.address);

  const auto sent = trace.of(0, Kind::packet_sent);
  CHECK(trace.psns(0, Kind::packet_sent) == Psns{100, 101, 102, 101, 102});
  for (const Record& packet : sent) {
    const bool again = &packet - sent.data() >= 3;
    CHECK(packet.request == 1);
    CHECK(packet.length_bytes == 1024);
    CHECK(packet.peer_qpn == pair.b.qpn.value);
    CHECK(packet.peer_device == 1);
    CHECK(((packet.flags & flag::kRetransmission) != 0) == again);
    CHECK(packet.cause == (again ? Cause::sequence_nak : Cause::none));
  }
  CHECK((sent[0].flags & flag::kHasReth) != 0);
  CHECK(sent[0].value == far.address);
  CHECK(trace.psns(1, Kind::packet_received) == Psns{100, 102, 101, 102});
  CHECK(trace.psns(1, Kind::out_of_sequence) == Psns{102});
  const auto refused = trace.of(1, Kind::packet_refused);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].program == static_cast<uint16_t>(transport::Refusal::out_of_sequence_psn));
  CHECK(trace.of(1, Kind::nak_sent).size() == 1);
  CHECK(trace.psns(1, Kind::data_placed) == Psns{100, 101, 102});
  const auto placed = trace.of(1, Kind::data_placed);
  for (size_t i = 0; i < placed.size(); ++i) {
    CHECK(placed[i].length_bytes == 1024);
    CHECK(placed[i].flags == flag::kHasReth);
    CHECK(placed[i].value == far.address + 1024 * i);
  }
  const auto naks = trace.of(0, Kind::nak_received);
  REQUIRE(naks.size() == 1);
  CHECK(naks[0].code == wire::syndrome::kNakSequence);
  REQUIRE(trace.of(0, Kind::retransmission).size() == 1);
  CHECK(trace.of(0, Kind::retransmission)[0].cause == Cause::sequence_nak);
  CHECK(trace.failures == std::array{0, 0});
}

// One SEND of 64 bytes goes from a to b, and both have their completions.
static void deliver_one(Pair& pair) {
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  pair.b.receive(5, {far.sge()});
  pair.a.post(send(near));
  pair.drive();
}

TEST_CASE("trace recorder: who posts, and whose a completion is") {
  Pair pair;
  Recording trace(pair);
  deliver_one(pair);
  transport::Completion polled;
  polled.qpn = pair.a.qpn;
  trace.recorder(0).on_polled(polled, 1, trace.now(), true);
  for (const Kind kind : {Kind::posted, Kind::taken, Kind::completion_pushed})
    for (const uint16_t device : {0, 1}) {
      const auto found = trace.of(device, kind);
      REQUIRE(found.size() == 1);
      CHECK(found[0].program == device);
    }
  REQUIRE(trace.of(0, Kind::completion_polled).size() == 1);
  CHECK(trace.of(0, Kind::completion_polled)[0].program == 0);
}

TEST_CASE("trace recorder: where bytes belong, where packets tell") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(2 * 1024 + 100, 1);
  const Buffer far = pair.b.buffer(2 * 1024 + 100);
  pair.b.receive(5, {far.sge()});
  pair.a.post(send(near));
  pair.drive();
  const auto sent = trace.of(1, Kind::data_placed);
  REQUIRE(sent.size() == 3);
  for (const Record& record : sent) {
    CHECK(record.flags == 0);
    CHECK(record.value == 0);
  }
  pair.a.post(write(near, far));
  pair.drive();
  const auto placed = trace.of(1, Kind::data_placed);
  REQUIRE(placed.size() == 6);
  CHECK(placed[5].value == far.address + 2048);
  CHECK(placed[5].length_bytes == 100);
}

TEST_CASE("trace recorder: the CQs and the SRQ of a QP") {
  Pair pair;
  Recording trace(pair);
  deliver_one(pair);
  const Record own = trace.of(0, Kind::qp_created).at(0);
  CHECK(std::array{own.count, own.length_bytes, own.detail} == std::array{3u, 4u, 0u});
  CHECK((own.flags & flag::kShared) == 0);
  const Record shared = trace.of(1, Kind::qp_created).at(0);
  CHECK(std::array{shared.count, shared.length_bytes, shared.detail} == std::array{7u, 7u, 9u});
  CHECK((shared.flags & flag::kShared) != 0);
  CHECK(trace.of(0, Kind::completion_pushed).at(0).count == 3);
  CHECK(trace.of(1, Kind::completion_pushed).at(0).count == 7);
  transport::Completion received;
  received.qpn = pair.a.qpn;
  received.opcode = transport::WcOpcode::receive;
  trace.recorder(0).on_polled(received, 1, trace.now(), true);
  CHECK(trace.of(0, Kind::completion_polled).at(0).count == 4);
}

TEST_CASE("trace recorder: a receiver that is not ready") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  pair.a.post(send(near));
  pair.run_for(20 * kUs);
  pair.b.receive(5, {far.sge()});
  pair.drive();
  CHECK(trace.psns(1, Kind::rnr_sent) == Psns{100});
  CHECK(trace.of(1, Kind::rnr_sent)[0].code == (wire::syndrome::kRnr | 5));
  // No more than once for each time that it begins.
  const auto waits = trace.of(0, Kind::waits);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].cause == Cause::rnr_wait);
  CHECK(trace.psns(0, Kind::rnr_received) == Psns{100});
  const auto sent = trace.of(0, Kind::packet_sent);
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].cause == Cause::rnr_nak);
  const auto taken = trace.of(1, Kind::taken);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].wr_id == 5);
  CHECK((taken[0].flags & flag::kReceiveQueue) != 0);
  CHECK(trace.of(1, Kind::completion_pushed)[0].request == 1);
}

TEST_CASE("trace recorder: why a QP does not send while it could") {
  PairOptions options;
  options.max_rd_atomic = 1;
  Pair pair(options);
  Recording trace(pair);
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  for (uint64_t id = 1; id <= 3; ++id) pair.a.post(read(near, far, id));
  pair.drive();
  const auto waits = trace.of(0, Kind::waits);
  const auto sent = trace.of(0, Kind::packet_sent);
  REQUIRE(sent.size() == 3);
  REQUIRE(waits.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(waits[i].cause == Cause::rd_atomics);
    CHECK(waits[i].time_ns >= sent[i].time_ns);
    CHECK(waits[i].time_ns <= sent[i + 1].time_ns);
  }
  CHECK(trace.of(1, Kind::waits).empty());
}

TEST_CASE("trace recorder: what is wrong with a key that is refused") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(64, 1);
  Buffer far = pair.b.buffer(64);
  far.key ^= 1;
  pair.a.post(write(near, far));
  pair.drive();
  const auto refused = trace.of(1, Kind::packet_refused);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].detail == far.key);
  CHECK(refused[0].cause == Cause::key_gone);
  CHECK(refused[0].code == wire::syndrome::kNakRemoteAccess);
  CHECK(trace.explained == std::array<uint64_t, 4>{1, far.key, far.address, 64});
}

TEST_CASE("trace recorder: a frame that a fault takes is lost where it was taken") {
  Pair pair;
  Recording trace(pair);
  const wire::Ethernet ethernet{};
  wire::Bth bth;
  bth.opcode = static_cast<uint8_t>(Operation::read_request);
  bth.destination_qp = pair.b.qpn;
  bth.psn = Psn(100);
  const wire::Ip ip{.source = pair.a.attributes.path.local_gid,
                    .destination = pair.b.attributes.path.local_gid};
  const std::vector<std::byte> taken = wire::build_frame(ethernet, ip, {}, bth, {}, {});
  pair.a.endpoint().observer()->on_fault_loss(taken, false);
  pair.b.endpoint().observer()->on_fault_loss(taken, true);
  for (const uint16_t device : {0, 1}) {
    const auto lost = trace.of(device, Kind::packet_lost);
    REQUIRE(lost.size() == 1);
    CHECK(lost[0].program == kLostByFault);
    CHECK(lost[0].psn == 100);
    CHECK(((lost[0].flags & flag::kArriving) != 0) == (device == 1));
  }
}

TEST_CASE("trace recorder: a lost packet is not another QP's whose peer has the same number") {
  Pair pair;
  Recording trace(pair);
  wire::Gid third = pair.b.attributes.path.local_gid;
  third.bytes[15] ^= 0x40;
  for (const uint32_t qpn : {0x900u, 0x901u})
    trace.recorder(0).add_known({.qpn = wire::Qpn{qpn},
                                 .state = QpState::ready_to_send,
                                 .peer_qpn = pair.b.qpn,
                                 .peer_gid = third});
  const auto lose = [&](const wire::Gid& to) {
    wire::Packet packet;
    packet.bth.opcode = static_cast<uint8_t>(Operation::send_only);
    packet.bth.destination_qp = pair.b.qpn;
    packet.ip.destination = to;
    trace.recorder(0).on_lost(packet, 1, Cause::dropped, false);
    return trace.of(0, Kind::packet_lost);
  };
  const auto of_pair = lose(pair.b.attributes.path.local_gid);
  REQUIRE(of_pair.size() == 1);
  CHECK(of_pair[0].qpn == pair.a.qpn.value);
  CHECK(of_pair[0].peer_device == 1);
  const auto of_third = lose(third);
  REQUIRE(of_third.size() == 2);
  CHECK(of_third[1].qpn >= 0x900);
  CHECK(of_third[1].peer_device == 2);
}

TEST_CASE("trace recorder: the rate that a CNP leaves") {
  Pair pair;
  Recording trace(pair);
  pair.a.endpoint().observer()->on_event(pair.a.qpn, transport::TraceEvent::cnp_handled, 12'000);
  const auto congestion = trace.of(0, Kind::congestion);
  REQUIRE(congestion.size() == 1);
  CHECK(congestion[0].cause == Cause::cnp_handled);
  CHECK(congestion[0].value == 12'000'000);
}

TEST_CASE("trace recorder: messages of the connection manager") {
  wire::CmReq req;
  req.local_comm_id = 7;
  req.local_qpn = wire::Qpn{0x11};
  req.starting_psn = Psn(100);
  const wire::MadBytes mad = wire::build_cm({.body = req});
  const Record sent = cm_record(mad, true);
  CHECK(sent.kind == Kind::cm_sent);
  CHECK(sent.opcode == 0x10);
  CHECK(sent.value == uint64_t{7} << 32);
  CHECK(sent.qpn == 0x11);
  CHECK(sent.psn == 100);
  const Record received = cm_record(mad, false);
  CHECK(received.kind == Kind::cm_received);
  CHECK(received.value == 7);
  CHECK(received.peer_qpn == 0x11);
  wire::CmRej rej;
  rej.reason = wire::cm_reject::kConsumerDefined;
  CHECK(cm_record(wire::build_cm({.body = rej}), true).code == 28);
  CHECK(cm_record(wire::MadBytes{}, true).kind == Kind::none);
}

TEST_CASE("trace recorder: retries that are used up are a failure") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  pair.lose = [](const Sent&) { return true; };
  pair.a.post(write(near, far));
  pair.drive();
  const auto timeouts = trace.of(0, Kind::ack_timeout);
  REQUIRE(timeouts.size() >= 2);
  CHECK(timeouts[0].count == 1);
  CHECK(timeouts[1].count == 2);
  CHECK(timeouts[0].detail == 3);
  CHECK(timeouts[0].request == 1);
  CHECK(trace.of(0, Kind::completion_pushed)[0].code ==
        static_cast<uint8_t>(WcStatus::retry_exceeded_error));
  const auto states = trace.of(0, Kind::qp_state);
  CHECK(states.front().flags == flag::kExisted);
  CHECK(states.back().code == static_cast<uint8_t>(QpState::error));
  CHECK(trace.failures[0] >= 1);
}

TEST_CASE("trace recorder: an unsignaled request is over, too") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  pair.a.post(unsignaled(write(near, far, 1)));
  pair.a.post(write(near, far, 2));
  pair.drive();
  REQUIRE(trace.of(0, Kind::acknowledged).size() == 1);
  CHECK(trace.of(0, Kind::acknowledged)[0].request == 1);
  REQUIRE(trace.of(0, Kind::completion_pushed).size() == 1);
  CHECK(trace.of(0, Kind::completion_pushed)[0].request == 2);
}

TEST_CASE("trace recorder: TCP segmentation, which any QP may be asked for") {
  Pair pair;
  Recording trace(pair);
  pair.a.post({.wr_id = 8, .opcode = transport::WorkOpcode::tso});
  pair.drive();
  const auto taken = trace.of(0, Kind::taken);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].opcode == verbs::wr_opcode::kTso);
}

TEST_CASE("trace recorder: requests that one answer is for are one record") {
  Pair pair;
  Recording trace(pair);
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  for (uint64_t id = 1; id <= 3; ++id) pair.a.post(unsignaled(write(near, far, id)));
  pair.drive();
  CHECK(trace.of(0, Kind::acknowledged).empty());
  trace.recorder(0).flush();
  const auto acknowledged = trace.of(0, Kind::acknowledged);
  REQUIRE(acknowledged.size() == 1);
  CHECK(acknowledged[0].request == 3);
  CHECK(acknowledged[0].wr_id == 3);
}

TEST_CASE("trace recorder: what the filter does not let through is not recorded") {
  Pair pair;
  Recording trace(pair, {.qpns = {}, .programs = {"server"}});
  const Buffer near = pair.a.buffer(64, 1);
  const Buffer far = pair.b.buffer(64);
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(trace.of(0, Kind::packet_sent).empty());
  CHECK(trace.of(0, Kind::qp_created).empty());
  CHECK(trace.psns(1, Kind::packet_received) == Psns{100});
}

TEST_CASE("trace recorder: a QP that is made and destroyed meanwhile, and its program") {
  Pair pair;
  Recording trace(pair);
  const wire::Qpn made = *pair.a.endpoint().create_rc({});
  pair.a.endpoint().modify(made, QpState::init, {});
  const auto created = trace.of(0, Kind::qp_created);
  REQUIRE(created.size() == 2);
  CHECK(created[1].qpn == made.value);
  CHECK(created[1].flags == 0);
  CHECK(created[1].code == verbs::qp_type::kRc);
  CHECK(trace.of(0, Kind::program_began).size() == 1);
  pair.a.endpoint().destroy(made);
  CHECK(trace.of(0, Kind::qp_destroyed).size() == 1);
  CHECK(trace.recorder(0).describe_qps({}).size() == 2);

  trace.recorder(0).on_context_end(4711);
  CHECK(trace.failures[0] == 0);
  trace.recorder(0).on_context_end(100);
  CHECK(trace.failures[0] == 1);
  CHECK(trace.of(0, Kind::program_ended)[0].cause == Cause::by_death);
}

TEST_CASE("trace recorder: what the last records do not tell of is told as the past") {
  Pair pair;
  Recording trace(pair);
  const wire::Qpn made = *pair.a.endpoint().create_rc({});
  pair.a.endpoint().modify(made, QpState::init, {});
  pair.a.endpoint().modify(made, QpState::reset, {});
  std::vector<Record> kept = trace.of(0, Kind::qp_created);
  const std::vector<Record> states = trace.of(0, Kind::qp_state);
  kept.insert(kept.end(), states.begin(), states.end());
  CHECK(trace.recorder(0).describe_qps(kept).empty());

  // Only the last change is left.
  const auto past = trace.recorder(0).describe_qps({&states.back(), 1});
  REQUIRE(past.size() == 4);
  for (const Record& record : past) {
    CHECK(record.flags == flag::kExisted);
    if (record.qpn == made.value && record.kind == Kind::qp_state)
      CHECK(record.code == static_cast<uint8_t>(QpState::init));
  }
}

}  // namespace rocemu::trace
