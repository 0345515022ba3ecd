// Decorators of the device's parts: one of the memory that refuses accesses, one of the events.
#include "emulator/device/hca_parts.h"

#include <array>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "emulator/device/hca.h"
#include "emulator/transport/interface/passing_memory.h"

using namespace rocemu;
using namespace rocemu::device;
using transport::MemoryRange;

namespace {

// Counts local checks, and refuses them when told to.
class Gate final : public transport::PassingMemory {
 public:
  struct State {
    bool refuses = false;
    unsigned checks = 0;
  };
  Gate(std::unique_ptr<transport::Memory> memory, State& state)
      : PassingMemory(std::move(memory)), state_(state) {}

  bool check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                   uint32_t access, MemoryRange& range) noexcept override {
    ++state_.checks;
    return !state_.refuses && inner().check_local(pd, lkey, address, length_bytes, access, range);
  }

 private:
  State& state_;
};

class EventLog final : public transport::EventSink {
 public:
  void on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept override {
    inner->on_qp_event(qpn, event);
  }
  void on_qp_error(wire::Qpn qpn) noexcept override {
    failed.push_back(qpn);
    inner->on_qp_error(qpn);
  }
  transport::EventSink* inner = nullptr;
  std::vector<wire::Qpn> failed;
};

struct Queues final : WorkQueues, transport::SendQueue, transport::ReceiveQueue {
  std::vector<transport::SendWork> posted;
  bool pop(transport::SendWork& work) noexcept override {
    if (posted.empty()) return false;
    work = std::move(posted.back());
    posted.pop_back();
    return true;
  }
  bool pop(transport::ReceiveWork&) noexcept override { return false; }
  void release(uint32_t) noexcept override {}
  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  void show_state(transport::QpState state) noexcept override { shown = state; }
  void reset() noexcept override {}
  transport::QpState shown = transport::QpState::reset;
};

struct Ring final : CompletionRing {
  explicit Ring(std::vector<transport::Completion>& list) : completions(list) {}
  bool push(const transport::Completion& completion) noexcept override {
    completions.push_back(completion);
    return true;
  }
  bool show() noexcept override { return false; }
  bool take_arm() noexcept override { return false; }
  bool take_over(CompletionRing&) noexcept override { return true; }
  std::vector<transport::Completion>& completions;
};

struct NoEvents final : EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

struct AnyBody final : AddressResolver {
  bool resolve(const wire::Gid&, MacAddress&) noexcept override { return true; }
};

struct NoWire final : transport::FrameSink {
  bool allocate(transport::FrameBuffer& buffer) noexcept override {
    buffer.data = frame.data();
    return true;
  }
  void send(const transport::FrameBuffer&, uint32_t) noexcept override { ++sent; }
  void discard(const transport::FrameBuffer&) noexcept override {}
  std::array<std::byte, transport::kMaxFrameBytes> frame{};
  unsigned sent = 0;
};

}  // namespace

TEST_CASE("A decorator stands between the device's keys and the transport, and before its events") {
  Gate::State gate;
  EventLog events;
  HcaParts parts;
  parts.memory = [&](MemoryRegions& regions) {
    return std::make_unique<Gate>(make_memory(regions), gate);
  };
  parts.endpoint = [&](transport::Memory& memory, transport::EventSink& sink,
                       const transport::TransportLimits& limits, uint32_t max_qps) {
    events.inner = &sink;
    return make_endpoint(memory, events, limits, max_qps);
  };
  AnyBody anybody;
  Hca hca(default_config(0), {}, anybody, parts);

  constexpr uint64_t kBase = 0x10000;
  std::array<std::byte, 64> memory{};
  std::vector<transport::Completion> completions;
  const ContextId context =
      *hca.open_context(dma::AddressSpace::local(memory, kBase), std::make_unique<NoEvents>());
  QpSpec spec;
  spec.pd = *hca.alloc_pd(context);
  spec.send_cq = spec.receive_cq =
      *hca.create_cq(context, {8, 0, 0, 0}, std::make_unique<Ring>(completions));
  spec.type = 2;
  spec.max_send_wr = 1;
  auto own = std::make_unique<Queues>();
  Queues& queues = *own;
  const CreatedQp qp = *hca.create_qp(context, spec, std::move(own));
  const MrKeys keys = *hca.reg_mr(context, {spec.pd, 1, kBase, memory.size(), kBase});
  QpAttr attr;
  attr.port_num = attr.ah.port_num = 1;
  attr.path_mtu = 1;
  attr.ah.is_global = true;
  attr.ah.sgid_index = 1;
  attr.ah.dgid = default_config(1).port.gids[1].gid;
  attr.qp_state = 1;
  REQUIRE(hca.modify_qp(context, qp.qp, kState | kPkeyIndex | kPort | kAccessFlags, attr));
  attr.qp_state = 2;
  REQUIRE(hca.modify_qp(
      context, qp.qp, kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
      attr));
  attr.qp_state = 3;
  REQUIRE(hca.modify_qp(
      context, qp.qp, kState | kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxQpRdAtomic, attr));

  gate.refuses = GENERATE(false, true);
  transport::SendWork work;
  work.length_bytes = 8;
  const transport::Sge sge{kBase, 8, keys.lkey};
  work.sges.assign({&sge, 1});
  queues.posted.push_back(std::move(work));
  NoWire wire;
  hca.endpoint().on_doorbell(qp.qpn);
  hca.endpoint().transmit(1000, wire, 1);
  CHECK(gate.checks > 0);
  CHECK(wire.sent == (gate.refuses ? 0 : 1));
  CHECK(events.failed == (gate.refuses ? std::vector{qp.qpn} : std::vector<wire::Qpn>{}));
  CHECK((queues.shown == transport::QpState::error) == gate.refuses);
  REQUIRE(completions.size() == (gate.refuses ? 1 : 0));
  if (gate.refuses) CHECK(completions[0].status == transport::WcStatus::local_protection_error);

  const auto counters = hca.qp_counters(context, qp.qp);
  REQUIRE(counters);
  CHECK((*counters)[transport::TraceEvent::sent] == wire.sent);
  CHECK((*counters)[transport::TraceEvent::completion_with_error] == completions.size());
  CHECK(hca.qp_counters(context, 99).error() == ENOENT);
}
