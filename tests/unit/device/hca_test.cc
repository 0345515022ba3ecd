// The HCA with its queues in vectors and programs' memory in this process.
#include "emulator/device/hca.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "base/time.h"
#include "emulator/wire/icrc.h"

using namespace rocemu;
using namespace rocemu::device;
using transport::Completion;
using transport::QpState;
using transport::WcStatus;

namespace {

struct TestQueues final : WorkQueues, transport::SendQueue {
  struct Receives final : transport::ReceiveQueue {
    std::deque<transport::ReceiveWork> posted;
    bool pop(transport::ReceiveWork& work) noexcept override {
      if (posted.empty()) return false;
      work = std::move(posted.front());
      posted.pop_front();
      return true;
    }
  };
  std::deque<transport::SendWork> posted;
  Receives receives;
  QpState shown = QpState::reset;

  bool pop(transport::SendWork& work) noexcept override {
    if (posted.empty()) return false;
    work = std::move(posted.front());
    posted.pop_front();
    return true;
  }
  void release(uint32_t) noexcept override {}
  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return receives; }
  void show_state(QpState state) noexcept override { shown = state; }
  void reset() noexcept override {
    posted.clear();
    receives.posted.clear();
  }
};

struct RingContents {
  std::deque<Completion> completions;
  size_t capacity = 16;
  size_t shown = 0;
  bool armed = false;
};

struct TestRing final : CompletionRing {
  explicit TestRing(RingContents& ring) : contents(ring) {}
  bool push(const Completion& completion) noexcept override {
    if (contents.completions.size() >= contents.capacity) return false;
    contents.completions.push_back(completion);
    return true;
  }
  bool show() noexcept override {
    contents.shown = contents.completions.size();
    return contents.armed;
  }
  bool take_arm() noexcept override { return std::exchange(contents.armed, false); }
  bool take_over(CompletionRing& old) noexcept override {
    auto& unread = static_cast<TestRing&>(old).contents.completions;
    if (unread.size() > contents.capacity) return false;
    contents.completions = std::exchange(unread, {});
    return true;
  }
  RingContents& contents;
};

struct EventLog {
  std::vector<uint64_t> completion_events;
  std::vector<std::pair<uint64_t, uint32_t>> async_events;
  const RingContents* ring = nullptr;
  size_t shown_before = 0;  // completions in `ring` that were shown before the last async event
  bool full = false;
};

struct TestEvents final : EventChannel {
  explicit TestEvents(EventLog& event_log) : log(event_log) {}
  bool completion_event(uint64_t user_pointer) noexcept override {
    if (log.full) return false;
    log.completion_events.push_back(user_pointer);
    return true;
  }
  bool async_event(uint64_t element, uint32_t type) noexcept override {
    log.async_events.emplace_back(element, type);
    if (log.ring != nullptr) log.shown_before = log.ring->shown;
    return true;
  }
  EventLog& log;
};

struct TwoPorts final : AddressResolver {
  std::vector<HcaConfig> configs;
  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override {
    for (const auto& config : configs)
      for (const auto& entry : config.port.gids)
        if (entry.gid == gid) {
          mac = config.port.mac;
          return true;
        }
    return false;
  }
};

struct Wire final : transport::FrameSink {
  bool owes_icrc = false;
  std::deque<std::vector<std::byte>> frames;
  bool may_owe_icrc() const noexcept override { return owes_icrc; }
  bool allocate(transport::FrameBuffer& buffer) noexcept override {
    auto* storage = new std::vector<std::byte>(transport::kMaxFrameBytes);
    buffer = {storage->data(), storage};
    return true;
  }
  void send(const transport::FrameBuffer& buffer, uint32_t length) noexcept override {
    auto* storage = static_cast<std::vector<std::byte>*>(buffer.handle);
    storage->resize(length);
    CHECK((buffer.icrc_owed_from != 0) == owes_icrc);
    frames.push_back(std::move(*storage));
    delete storage;
  }
  void discard(const transport::FrameBuffer& buffer) noexcept override {
    delete static_cast<std::vector<std::byte>*>(buffer.handle);
  }
};

// One program with everything it needs for one QP.
struct Program {
  Program(Hca& device, std::span<std::byte> bytes) : hca(device), memory(bytes) {
    context = hca.open_context(dma::AddressSpace::local(memory, kBase),
                               std::make_unique<TestEvents>(events))
                  .value();
    pd = hca.alloc_pd(context).value();
    channel = hca.create_channel(context, std::make_unique<TestEvents>(events)).value();
    cq = hca.create_cq(context, {16, channel, 0, 0xc0}, std::make_unique<TestRing>(ring)).value();
    mr = hca.reg_mr(context, {pd, 7, kBase, memory.size(), kBase}).value();
    auto own = std::make_unique<TestQueues>();
    queues = own.get();
    QpSpec spec;
    spec.pd = pd;
    spec.send_cq = spec.receive_cq = cq;
    spec.type = 2;
    spec.max_send_wr = spec.max_recv_wr = 8;
    spec.max_send_sge = spec.max_recv_sge = 1;
    spec.user_pointer = 0x90;
    const auto created = hca.create_qp(context, spec, std::move(own)).value();
    qp = created.qp;
    qpn = created.qpn;
  }

  void connect(const Program& peer) {
    QpAttr attr;
    attr.port_num = attr.ah.port_num = 1;
    attr.qp_access_flags = 15;
    attr.path_mtu = 3;
    attr.ah.is_global = true;
    attr.ah.sgid_index = 1;
    attr.ah.dgid = peer.hca.config().port.gids[1].gid;
    attr.dest_qp_num = peer.qpn.value;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 3;
    attr.qp_state = 1;
    REQUIRE(hca.modify_qp(context, qp, kState | kPkeyIndex | kPort | kAccessFlags, attr));
    attr.qp_state = 2;
    REQUIRE(hca.modify_qp(
        context, qp, kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
        attr));
    attr.qp_state = 3;
    REQUIRE(hca.modify_qp(
        context, qp, kState | kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxQpRdAtomic, attr));
  }

  static constexpr uint64_t kBase = 0x10000;
  Hca& hca;
  std::span<std::byte> memory;
  EventLog events;
  RingContents ring;
  ContextId context = 0;
  Handle pd = 0, channel = 0, cq = 0, qp = 0;
  MrKeys mr;
  wire::Qpn qpn;
  TestQueues* queues = nullptr;
};

struct Fabric {
  Fabric() : a(default_config(0), {}, resolver), b(default_config(1), {}, resolver) {
    resolver.configs = {default_config(0), default_config(1)};
  }

  void run() {
    for (bool busy = true; busy;) {
      busy = false;
      for (Hca* hca : {&a, &b}) {
        Wire wire;
        wire.owes_icrc = owes_icrc;
        if (hca->endpoint().transmit(now, wire, 64) == 0) continue;
        busy = true;
        Hca& other = hca == &a ? b : a;
        std::vector<std::span<const std::byte>> frames(wire.frames.begin(), wire.frames.end());
        other.endpoint().on_frames(now, frames,
                                   owes_icrc ? transport::Icrc::owed : transport::Icrc::there);
        for (std::vector<std::byte>& frame : wire.frames) seen.push_back(std::move(frame));
        a.publish_completions(0);
        b.publish_completions(0);
      }
    }
  }

  TwoPorts resolver;
  TimeNs now = 1000;
  bool owes_icrc = false;
  std::vector<std::vector<std::byte>> seen;
  Hca a, b;
};

transport::SendWork send_of(const Program& program, uint64_t wr_id, uint32_t length) {
  transport::SendWork work;
  work.wr_id = wr_id;
  work.signaled = true;
  work.length_bytes = length;
  const transport::Sge sge{Program::kBase, length, program.mr.lkey};
  work.sges.assign({&sge, 1});
  return work;
}

transport::ReceiveWork receive_of(const Program& program, uint64_t wr_id, uint32_t length) {
  transport::ReceiveWork work;
  work.wr_id = wr_id;
  work.length_bytes = length;
  const transport::Sge sge{Program::kBase, length, program.mr.lkey};
  work.sges.assign({&sge, 1});
  return work;
}

}  // namespace

TEST_CASE("A message goes from one program's memory to another's, and both are told") {
  std::vector<std::byte> here(10000, std::byte{0x5a}), there(10000);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there);
  sender.connect(receiver);
  receiver.connect(sender);
  receiver.ring.armed = true;
  receiver.queues->receives.posted.push_back(receive_of(receiver, 7, 10000));
  sender.queues->posted.push_back(send_of(sender, 8, 9000));
  fabric.a.endpoint().on_doorbell(sender.qpn);
  fabric.run();

  REQUIRE(sender.ring.completions.size() == 1);
  CHECK(sender.ring.completions[0].wr_id == 8);
  CHECK(sender.ring.completions[0].status == WcStatus::success);
  REQUIRE(receiver.ring.completions.size() == 1);
  CHECK(receiver.ring.completions[0].wr_id == 7);
  CHECK(receiver.ring.completions[0].byte_length == 9000);
  CHECK(std::memcmp(here.data(), there.data(), 9000) == 0);
  CHECK(there[9000] == std::byte{0});
  CHECK(receiver.events.completion_events == std::vector<uint64_t>{0xc0});
  CHECK(sender.events.completion_events.empty());
}

TEST_CASE("Frames that owe their ICRC are the same when it is paid, and are not checked") {
  std::vector<std::vector<std::byte>> frames[2];
  for (const bool owed : {false, true}) {
    std::vector<std::byte> here(10000, std::byte{0x5a}), there(10000);
    Fabric fabric;
    fabric.owes_icrc = owed;
    Program sender(fabric.a, here), receiver(fabric.b, there);
    sender.connect(receiver);
    receiver.connect(sender);
    receiver.queues->receives.posted.push_back(receive_of(receiver, 7, 10000));
    sender.queues->posted.push_back(send_of(sender, 8, 9001));
    fabric.a.endpoint().on_doorbell(sender.qpn);
    fabric.run();
    REQUIRE(sender.ring.completions.size() == 1);
    CHECK(sender.ring.completions[0].status == WcStatus::success);
    CHECK(std::memcmp(here.data(), there.data(), 9001) == 0);
    CHECK(fabric.b.endpoint().counters()[transport::TraceEvent::icrc_error] == 0);
    frames[owed] = std::move(fabric.seen);
  }
  REQUIRE(frames[1].size() > 3);
  CHECK(frames[0] != frames[1]);
  for (std::vector<std::byte>& frame : frames[1])
    wire::store_datagram_icrc(std::span(frame).subspan(14));
  CHECK(frames[0] == frames[1]);
}

TEST_CASE("What a QP has completed is shown when it has been reset or destroyed") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program program(fabric.a, here), peer(fabric.b, there);
  program.connect(peer);
  program.ring.armed = true;
  program.queues->receives.posted.push_back(receive_of(program, 7, 100));
  QpAttr attr;
  attr.qp_state = 6;
  REQUIRE(fabric.a.modify_qp(program.context, program.qp, kState, attr));
  REQUIRE(program.ring.completions.size() == 1);
  REQUIRE(program.ring.shown == 0);
  if (GENERATE(false, true)) {
    attr.qp_state = 0;
    REQUIRE(fabric.a.modify_qp(program.context, program.qp, kState, attr));
  } else {
    REQUIRE(fabric.a.destroy_qp(program.context, program.qp));
  }
  CHECK(program.ring.shown == 1);
  CHECK(program.events.completion_events.empty());
  fabric.a.publish_completions(0);
  CHECK(program.events.completion_events == std::vector<uint64_t>{0xc0});
}

TEST_CASE("The device tells of its QPs, by number, and of some where there are too many") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there), other(fabric.a, there);
  CHECK(fabric.a.report_qps(0, 10).size() == 2);
  CHECK(fabric.a.report_qps(0, 1).size() == 1);
  sender.connect(receiver);
  receiver.connect(sender);
  receiver.queues->receives.posted.push_back(receive_of(receiver, 7, 100));
  sender.queues->posted.push_back(send_of(sender, 8, 100));
  fabric.a.endpoint().on_doorbell(sender.qpn);
  fabric.run();

  const std::vector<QpReport> reports = fabric.a.report_qps(0, 10);
  REQUIRE(reports.size() == 2);
  REQUIRE(reports[0].qpn < reports[1].qpn);
  const QpReport& sent = reports[reports[0].qpn == sender.qpn ? 0 : 1];
  CHECK(sent.service == transport::Service::rc);
  CHECK(sent.state == QpState::ready_to_send);
  CHECK(sent.remote_qpn == receiver.qpn);
  CHECK(sent.counters[transport::TraceEvent::payload_sent] == 100);
  CHECK(sent.load.requests == 0);
  const QpReport& idle = reports[reports[0].qpn == sender.qpn ? 1 : 0];
  CHECK(idle.state == QpState::reset);
  CHECK(idle.remote_qpn == wire::Qpn{});
}

TEST_CASE("An event that found no room is sent when there is some, and not tried each turn") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there);
  sender.connect(receiver);
  receiver.connect(sender);
  receiver.ring.armed = true;
  receiver.events.full = true;
  receiver.queues->receives.posted.push_back(receive_of(receiver, 7, 100));
  sender.queues->posted.push_back(send_of(sender, 8, 10));
  fabric.a.endpoint().on_doorbell(sender.qpn);
  fabric.run();
  fabric.b.publish_completions(0);
  CHECK(receiver.events.completion_events.empty());
  receiver.events.full = false;
  fabric.b.publish_completions(0);
  CHECK(receiver.events.completion_events.empty());
  const TimeNs again = fabric.b.next_held_event();
  REQUIRE(again != kNever);
  CHECK_FALSE(fabric.b.publish_completions(again));
  CHECK(receiver.events.completion_events.size() == 1);
}

TEST_CASE("Events of a moderated CQ wait for as many completions, or for the time") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there);
  sender.connect(receiver);
  receiver.connect(sender);
  const auto receive_one = [&] {
    receiver.queues->receives.posted.push_back(receive_of(receiver, 7, 100));
    sender.queues->posted.push_back(send_of(sender, 8, 10));
    fabric.a.endpoint().on_doorbell(sender.qpn);
    fabric.run();
  };
  const auto events = [&] { return receiver.events.completion_events.size(); };
  REQUIRE(fabric.b.moderate_cq(receiver.context, receiver.cq, {3, 50'000}) == 0);
  CHECK(fabric.b.moderate_cq(receiver.context, 0x7fff, {3, 50'000}) == ENOENT);

  // Those that come before the program asks do not count.
  receive_one();
  receive_one();
  receiver.ring.armed = true;
  receive_one();
  receive_one();
  CHECK(events() == 0);
  CHECK(fabric.b.next_held_event() != kNever);
  receive_one();
  CHECK(events() == 1);

  receiver.ring.armed = true;
  receive_one();
  CHECK(events() == 1);
  const TimeNs due = fabric.b.next_held_event();
  fabric.b.publish_completions(due - 1);
  CHECK(events() == 1);
  fabric.b.publish_completions(due);
  CHECK(events() == 2);
  CHECK(fabric.b.next_held_event() == kNever);

  // What is held back when moderation ends is sent.
  receiver.ring.armed = true;
  receive_one();
  CHECK(events() == 2);
  REQUIRE(fabric.b.moderate_cq(receiver.context, receiver.cq, {3, 0}) == 0);
  fabric.b.publish_completions(0);
  CHECK(events() == 3);
  receiver.ring.armed = true;
  receive_one();
  CHECK(events() == 4);
}

TEST_CASE("An event that is held back is forgotten with its CQ") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there);
  sender.connect(receiver);
  receiver.connect(sender);
  REQUIRE(fabric.b.moderate_cq(receiver.context, receiver.cq, {3, 50'000}) == 0);
  receiver.ring.armed = true;
  receiver.queues->receives.posted.push_back(receive_of(receiver, 7, 100));
  sender.queues->posted.push_back(send_of(sender, 8, 10));
  fabric.a.endpoint().on_doorbell(sender.qpn);
  fabric.run();
  CHECK(fabric.b.next_held_event() != kNever);
  fabric.b.close_context(receiver.context);
  CHECK(fabric.b.next_held_event() == kNever);
}

TEST_CASE("A program is told that its send queue has drained after the completions of it") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there);
  sender.connect(receiver);
  receiver.connect(sender);
  sender.events.ring = &sender.ring;
  receiver.queues->receives.posted.push_back(receive_of(receiver, 0, 100));
  sender.queues->posted.push_back(send_of(sender, 8, 10));
  fabric.a.endpoint().on_doorbell(sender.qpn);
  Wire wire;
  fabric.a.endpoint().transmit(fabric.now, wire, 64);
  QpAttr attr;
  attr.qp_state = 4;  // SQD
  attr.en_sqd_async_notify = 1;
  REQUIRE(fabric.a.modify_qp(sender.context, sender.qp, kState | kEnSqdAsyncNotify, attr));
  const auto views = [](const Wire& of) {
    return std::vector<std::span<const std::byte>>(of.frames.begin(), of.frames.end());
  };
  Wire answers, nothing;
  fabric.b.endpoint().on_frames(fabric.now, views(wire));
  fabric.b.endpoint().transmit(fabric.now, answers, 64);
  fabric.a.endpoint().on_frames(fabric.now, views(answers));
  fabric.a.endpoint().transmit(fabric.now, nothing, 64);
  CHECK(sender.events.async_events.empty());
  fabric.a.publish_completions(0);
  constexpr uint32_t kSendQueueDrained = 5;
  REQUIRE(sender.events.async_events.size() == 1);
  CHECK(sender.events.async_events[0] == std::pair<uint64_t, uint32_t>{0x90, kSendQueueDrained});
  CHECK(sender.events.shown_before == 1);
}

TEST_CASE("A CQ that overruns tells its program and takes its QPs down; the device goes on") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program sender(fabric.a, here), receiver(fabric.b, there);
  sender.connect(receiver);
  receiver.connect(sender);
  sender.ring.capacity = 2;
  for (int i = 0; i < 4; ++i) {
    receiver.queues->receives.posted.push_back(receive_of(receiver, 0, 100));
    sender.queues->posted.push_back(send_of(sender, 0, 10));
  }
  fabric.a.endpoint().on_doorbell(sender.qpn);
  fabric.run();
  REQUIRE(sender.events.async_events.size() == 2);
  CHECK(sender.events.async_events[0] == std::pair<uint64_t, uint32_t>{0xc0, 0});
  CHECK(sender.events.async_events[1] == std::pair<uint64_t, uint32_t>{0x90, 1});
  CHECK(sender.queues->shown == QpState::error);
  CHECK(fabric.a.query_qp(sender.context, sender.qp)->qp_state == 6);

  std::vector<std::byte> more(100), other(100);
  Program next(fabric.a, more), peer(fabric.b, other);
  next.connect(peer);
  peer.connect(next);
  peer.queues->receives.posted.push_back(receive_of(peer, 1, 100));
  next.queues->posted.push_back(send_of(next, 2, 100));
  fabric.a.endpoint().on_doorbell(next.qpn);
  fabric.run();
  REQUIRE(next.ring.completions.size() == 1);
  CHECK(next.ring.completions[0].status == WcStatus::success);
}

TEST_CASE("What is in use is not destroyed, and nothing is left when the program has gone") {
  std::vector<std::byte> here(100);
  Fabric fabric;
  {
    Program program(fabric.a, here);
    CHECK(fabric.a.dealloc_pd(program.context, program.pd) == EBUSY);
    CHECK(fabric.a.destroy_cq(program.context, program.cq).error() == EBUSY);
    CHECK(fabric.a.destroy_channel(program.context, program.channel) == EBUSY);
    CHECK(fabric.a.dealloc_pd(program.context, 99) == ENOENT);
    CHECK(fabric.a.dereg_mr(program.context, 0) == ENOENT);
    CHECK(fabric.a.counts().qps == 1);

    // Another context's handles name nothing here.
    std::vector<std::byte> there(100);
    const auto stranger = fabric.a
                              .open_context(dma::AddressSpace::local(there, 0),
                                            std::make_unique<TestEvents>(program.events))
                              .value();
    CHECK(fabric.a.destroy_qp(stranger, program.qp).error() == ENOENT);
    fabric.a.close_context(stranger);
    fabric.a.close_context(program.context);
    fabric.a.close_context(program.context);
  }
  const ObjectCounts counts = fabric.a.counts();
  CHECK(counts.contexts + counts.pds + counts.mrs + counts.cqs + counts.qps + counts.channels == 0);
}

TEST_CASE("Objects can be destroyed in order, one by one") {
  std::vector<std::byte> here(100);
  Fabric fabric;
  Program program(fabric.a, here);
  CHECK(fabric.a.destroy_qp(program.context, program.qp));
  CHECK(fabric.a.destroy_cq(program.context, program.cq));
  CHECK(fabric.a.destroy_channel(program.context, program.channel) == 0);
  CHECK(fabric.a.dereg_mr(program.context, program.mr.mr) == 0);
  CHECK(fabric.a.dealloc_pd(program.context, program.pd) == 0);
  CHECK(fabric.a.counts().contexts == 1);
}

TEST_CASE("Registrations and QPs outside of what verbs allows are refused") {
  std::vector<std::byte> here(100);
  Fabric fabric;
  Program program(fabric.a, here);
  const auto reg = [&](uint32_t access, uint64_t address, uint64_t length) {
    const auto result =
        fabric.a.reg_mr(program.context, {program.pd, access, address, length, address});
    return result ? 0 : result.error();
  };
  CHECK(reg(0, 0x10000, 100) == 0);
  CHECK(reg(transport::kRemoteWrite, 0x10000, 100) == EINVAL);
  CHECK(reg(transport::kRemoteAtomic, 0x10000, 100) == EINVAL);
  CHECK(reg(1u << 30, 0x10000, 100) == EINVAL);
  CHECK(reg(1u << 31, 0x10000, 100) == EINVAL);
  CHECK(reg(1u << 6, 0x10000, 100) == 0);
  CHECK(reg(0, ~uint64_t{0} - 10, 100) == EINVAL);

  const DeviceLimits limits;
  QpSpec spec;
  spec.type = 2;
  CHECK(check_qp(limits, spec) == 0);
  spec.max_send_sge = limits.max_sge + 1;
  CHECK(check_qp(limits, spec) == EINVAL);
  spec.max_send_sge = 1;
  spec.max_tso_header = 54;
  CHECK(check_qp(limits, spec) == EINVAL);
  spec.type = verbs::qp_type::kRawPacket;
  CHECK(check_qp(limits, spec) == 0);
  spec.max_tso_header = transport::kMaxTsoHeaderBytes + 1;
  CHECK(check_qp(limits, spec) == EINVAL);
  spec.max_tso_header = 0;
  CHECK(check_qp(limits, spec) == 0);
  spec.type = verbs::qp_type::kDriver;
  CHECK(check_qp(limits, spec) == EOPNOTSUPP);
  CHECK(check_cq(limits, {0, 0, 0, 0}) == EINVAL);
  CHECK(check_cq(limits, {limits.max_cqe, 0, 0, 0}) == 0);
  CHECK(check_cq(limits, {limits.max_cqe + 1, 0, 0, 0}) == EINVAL);
  CHECK(check_cq(limits, {1, 0, limits.num_comp_vectors, 0}) == EINVAL);
}

TEST_CASE("Modify refuses values out of range and leaves the QP as it was") {
  std::vector<std::byte> here(100);
  Fabric fabric;
  Program program(fabric.a, here);
  QpAttr attr;
  attr.qp_state = 1;
  attr.port_num = 2;
  const uint32_t to_init = kState | kPkeyIndex | kPort | kAccessFlags;
  CHECK(fabric.a.modify_qp(program.context, program.qp, to_init, attr).error() == EINVAL);
  attr.port_num = 1;
  attr.pkey_index = 1;
  CHECK(fabric.a.modify_qp(program.context, program.qp, to_init, attr).error() == EINVAL);
  attr.pkey_index = 0;
  attr.qp_access_flags = 1u << 10;
  CHECK(fabric.a.modify_qp(program.context, program.qp, to_init, attr).error() == EINVAL);
  attr.qp_access_flags = 0;
  attr.qp_state = 9;
  CHECK(fabric.a.modify_qp(program.context, program.qp, to_init, attr).error() == EINVAL);
  CHECK(fabric.a.query_qp(program.context, program.qp)->qp_state == 0);
  // Persistence can be granted here, and is by no region.
  attr.qp_state = 1;
  attr.qp_access_flags = transport::kRemoteWrite | kFlushGlobal | kFlushPersistent;
  CHECK(fabric.a.modify_qp(program.context, program.qp, to_init, attr));
}

namespace {

QpAttr other_path(const Program& peer) {
  QpAttr attr;
  attr.alt_ah.is_global = true;
  attr.alt_ah.sgid_index = 2;
  attr.alt_ah.dgid = peer.hca.config().port.gids[2].gid;
  attr.alt_ah.port_num = attr.alt_port_num = 1;
  attr.alt_timeout = 11;
  attr.path_mig_state = static_cast<uint32_t>(transport::MigrationState::rearm);
  return attr;
}

void send_one(Fabric& fabric, Program& from, Program& to) {
  to.queues->receives.posted.push_back(receive_of(to, 1, 10));
  from.queues->posted.push_back(send_of(from, 2, 10));
  from.hca.endpoint().on_doorbell(from.qpn);
  fabric.run();
  REQUIRE(from.ring.completions.back().status == WcStatus::success);
}

}  // namespace

TEST_CASE("The attributes of a QP that has migrated are those of its alternate path") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program a(fabric.a, here), b(fabric.b, there);
  a.connect(b);
  b.connect(a);
  const auto state = [](const Program& program) {
    return static_cast<transport::MigrationState>(
        program.hca.query_qp(program.context, program.qp)->path_mig_state);
  };
  using enum transport::MigrationState;
  REQUIRE(a.hca.modify_qp(a.context, a.qp, kAltPath | kPathMigState, other_path(b)));
  REQUIRE(b.hca.modify_qp(b.context, b.qp, kAltPath | kPathMigState, other_path(a)));
  CHECK(state(a) == rearm);
  send_one(fabric, a, b);
  CHECK(state(a) == armed);
  CHECK(state(b) == armed);

  // Nobody has the address any more that the path leads to: that is what one migrates for.
  const wire::Gid lost = fabric.resolver.configs[1].port.gids[1].gid;
  fabric.resolver.configs[1].port.gids[1].gid = {};
  QpAttr attr;
  attr.path_mig_state = static_cast<uint32_t>(migrated);
  REQUIRE(a.hca.modify_qp(a.context, a.qp, kPathMigState, attr));
  CHECK(a.hca.query_qp(a.context, a.qp)->ah.dgid != lost);
  send_one(fabric, a, b);
  for (const Program* program : {&a, &b}) {
    const QpAttr now = *program->hca.query_qp(program->context, program->qp);
    CHECK(state(*program) == migrated);
    CHECK(now.ah.sgid_index == 2);
    CHECK(now.alt_ah.sgid_index == 2);
    CHECK(now.timeout == 11);
    CHECK(std::ranges::count(program->events.async_events,
                             std::pair<uint64_t, uint32_t>{0x90, 6}) == 1);
  }
  attr.min_rnr_timer = 5;
  CHECK(a.hca.modify_qp(a.context, a.qp, kMinRnrTimer, attr));
  send_one(fabric, a, b);

  attr.qp_state = static_cast<uint32_t>(QpState::reset);
  REQUIRE(a.hca.modify_qp(a.context, a.qp, kState, attr));
  CHECK(a.hca.query_qp(a.context, a.qp)->alt_timeout == 0);
}

TEST_CASE("An alternate path is one of this port, and is armed by the peer alone") {
  std::vector<std::byte> here(100), there(100);
  Fabric fabric;
  Program a(fabric.a, here), b(fabric.b, there);
  a.connect(b);
  const auto refused = [&](uint32_t mask, auto spoil) {
    QpAttr attr = other_path(b);
    spoil(attr);
    const auto result = a.hca.modify_qp(a.context, a.qp, mask, attr);
    return result ? 0 : result.error();
  };
  const auto nothing = [](QpAttr&) {};
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_port_num = 0; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_ah.port_num = 2; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_pkey_index = 1; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_timeout = 32; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_ah.is_global = false; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_ah.sgid_index = 77; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_ah.sgid_index = 1; }) == EINVAL);
  CHECK(refused(kAltPath, [](QpAttr& attr) { attr.alt_ah.dgid.bytes[9] = 7; }) == EHOSTUNREACH);
  CHECK(refused(kPathMigState, nothing) == EINVAL);  // there is no path to arm
  CHECK(refused(kPathMigState, [](QpAttr& attr) { attr.path_mig_state = 2; }) == EINVAL);
  CHECK(refused(kPathMigState, [](QpAttr& attr) { attr.path_mig_state = 3; }) == EINVAL);
  CHECK(refused(kAltPath | kPathMigState, nothing) == 0);
  CHECK(refused(kPathMigState, [](QpAttr& attr) { attr.path_mig_state = 0; }) == EINVAL);
  CHECK(refused(kPathMigState, nothing) == 0);  // REARM again
}
