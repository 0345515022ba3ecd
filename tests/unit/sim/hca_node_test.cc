// Whole devices in virtual time, beside a bare endpoint.
#include "emulator/sim/hca_node.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"

using namespace rocemu;
using namespace rocemu::device;
using namespace rocemu::sim;
using transport::Completion;
using transport::QpState;
using transport::TraceEvent;
using transport::WcStatus;

namespace {

constexpr size_t kDepth = 16;
constexpr uint64_t kBase = 0x10000;
constexpr uint32_t kBytes = 40000;
constexpr uint32_t kBareBytes = 64;
constexpr uint64_t kManySeconds = 100'000'000'000;

struct Queues final : WorkQueues {
  SimSendQueue sends{kDepth};
  SimReceiveQueue receives;
  transport::SendQueue& send() noexcept override { return sends; }
  transport::ReceiveQueue& receive() noexcept override { return receives; }
  void show_state(QpState) noexcept override {}
  void reset() noexcept override {}
};

struct Ring final : CompletionRing {
  explicit Ring(std::vector<Completion>& completions) : shown(completions) {}
  bool push(const Completion& completion) noexcept override {
    pushed.push_back(completion);
    return true;
  }
  bool show() noexcept override {
    shown.insert(shown.end(), pushed.begin(), pushed.end());
    pushed.clear();
    return true;
  }
  bool take_arm() noexcept override { return true; }
  bool take_over(CompletionRing&) noexcept override { return true; }
  std::vector<Completion> pushed;
  std::vector<Completion>& shown;
};

struct Events final : EventChannel {
  explicit Events(uint32_t& events_written) : written(events_written) {}
  bool completion_event(uint64_t) noexcept override { return ++written > 0; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
  uint32_t& written;
};

// What one end of a connection has to know of the other.
struct Peer {
  wire::Gid gid;
  wire::Qpn qpn;
};

// A program on a device, with one RC QP; all of its memory is one region.
struct Program {
  explicit Program(HcaNode& hca_node, uint8_t fill = 0)
      : node(hca_node), hca(hca_node.hca()), memory(kBytes, std::byte{fill}) {
    context = *hca.open_context(dma::AddressSpace::local(memory, kBase),
                                std::make_unique<Events>(events));
    const Handle pd = *hca.alloc_pd(context);
    const Handle channel = *hca.create_channel(context, std::make_unique<Events>(events));
    const Handle cq =
        *hca.create_cq(context, {kDepth, channel, 0, 0}, std::make_unique<Ring>(completions));
    keys = *hca.reg_mr(context, {pd, 7, kBase, kBytes, kBase});
    auto own = std::make_unique<Queues>();
    queues = own.get();
    QpSpec spec;
    spec.pd = pd;
    spec.send_cq = spec.receive_cq = cq;
    spec.type = 2;
    spec.max_send_wr = spec.max_recv_wr = kDepth;
    const CreatedQp created = *hca.create_qp(context, spec, std::move(own));
    qp = created.qp;
    qpn = created.qpn;
  }
  Peer as_peer() const { return {node.gid(), qpn}; }

  void connect(const Peer& peer) {
    QpAttr attr;
    attr.port_num = attr.ah.port_num = 1;
    attr.qp_access_flags = 15;
    attr.path_mtu = 3;
    attr.ah.is_global = true;
    attr.ah.dgid = peer.gid;
    attr.dest_qp_num = peer.qpn.value;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
    attr.timeout = 8;
    attr.retry_cnt = attr.rnr_retry = 7;
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

  transport::Sge sge() const { return {kBase, kBytes, keys.lkey}; }
  void post(SendRequest request) {
    REQUIRE(queues->sends.post(std::move(request)));
    node.ring(qpn);
  }
  uint64_t count(TraceEvent event) const { return (*hca.qp_counters(context, qp))[event]; }

  HcaNode& node;
  Hca& hca;
  std::vector<std::byte> memory;
  std::vector<Completion> completions;
  uint32_t events = 0;
  ContextId context = 0;
  Handle qp = 0;
  MrKeys keys;
  wire::Qpn qpn;
  Queues* queues = nullptr;
};

std::vector<uint64_t> successes(const std::vector<Completion>& completions) {
  std::vector<uint64_t> wr_ids;
  for (const Completion& completion : completions)
    if (completion.status == WcStatus::success) wr_ids.push_back(completion.wr_id);
  return wr_ids;
}

// The same of a bare endpoint, which sends 64 bytes: more than travel in a completion.
struct BareEnd {
  explicit BareEnd(EndpointNode& bare_node)
      : node(bare_node), address(node.memory().allocate(kBareBytes)) {
    key = node.memory().register_region(1, address, kBareBytes, transport::kLocalWrite);
    qpn = *node.endpoint().create_rc({1, &sends, &receives, &cq, &cq});
    node.memory().at(address, kBareBytes)[0] = std::byte{0x77};
  }
  void connect(const Program& peer) {
    transport::QpAttributes attributes;
    attributes.path = node.path_to(peer.node);
    attributes.remote_qpn = peer.qpn;
    attributes.timeout = 8;
    attributes.retry_count = 7;
    for (const QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      node.endpoint().modify(qpn, state, attributes);
  }
  EndpointNode& node;
  uint64_t address;
  uint32_t key = 0;
  SimSendQueue sends{kDepth};
  SimReceiveQueue receives;
  SimCompletionQueue cq;
  wire::Qpn qpn;
};

}  // namespace

TEST_CASE("Two devices exchange a SEND and a WRITE over loss, and a bare endpoint sends beside") {
  const bool ipv6 = GENERATE(false, true);
  Fabric fabric(7);
  NodeOptions options;
  options.ipv6 = ipv6;
  Program a(fabric.add_node<HcaNode>(options), 0x5a);
  Program b(fabric.add_node<HcaNode>(options));
  Program b_written(b.node);
  Program a_writing(a.node, 0x3c);
  Program b_beside(b.node);
  BareEnd bare(fabric.add_node<EndpointNode>(options));
  for (const auto& [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}})
    fabric.set_link(from->node, to->node, {.delay_ns = 1000, .loss_ppm = 100'000});
  a.connect(b.as_peer());
  b.connect(a.as_peer());
  a_writing.connect(b_written.as_peer());
  b_written.connect(a_writing.as_peer());
  b_beside.connect({bare.node.gid(), bare.qpn});
  bare.connect(b_beside);

  b.queues->receives.post({.wr_id = 2, .sges = {b.sge()}});
  b_beside.queues->receives.post({.wr_id = 3, .sges = {b_beside.sge()}});
  a.post({.wr_id = 1, .sges = {a.sge()}});
  a_writing.post({.wr_id = 4,
                  .opcode = transport::WorkOpcode::write,
                  .remote_address = kBase,
                  .rkey = b_written.keys.rkey.value,
                  .sges = {a_writing.sge()}});
  REQUIRE(
      bare.sends.post({.wr_id = 5, .sges = {{bare.address, kBareBytes, wire::LKey{bare.key}}}}));
  bare.node.ring(bare.qpn);
  REQUIRE(fabric.run(kManySeconds));

  CHECK(successes(a.completions) == std::vector<uint64_t>{1});
  CHECK(successes(b.completions) == std::vector<uint64_t>{2});
  CHECK(b.events == 1);
  CHECK(b.memory == a.memory);
  CHECK(successes(a_writing.completions) == std::vector<uint64_t>{4});
  CHECK(b_written.completions.empty());
  CHECK(b_written.memory == a_writing.memory);
  CHECK(successes(b_beside.completions) == std::vector<uint64_t>{3});
  CHECK(successes(bare.cq.completions) == std::vector<uint64_t>{5});
  CHECK(b_beside.memory[0] == std::byte{0x77});

  CHECK(a.count(TraceEvent::retransmitted) + a_writing.count(TraceEvent::retransmitted) > 0);
  CHECK(b_beside.count(TraceEvent::duplicate_request) == 0);
  CHECK(bare.node.endpoint().counters()[TraceEvent::retransmitted] == 0);
}

TEST_CASE("A device has no way to an address of another network") {
  Fabric fabric(1);
  Program a(fabric.add_node<HcaNode>(NodeOptions{}));
  AhAttr ah;
  ah.port_num = 1;
  ah.is_global = true;
  ah.dgid = a.node.gid();
  ah.dgid.bytes[12] = 11;
  const Handle pd = *a.hca.alloc_pd(a.context);
  CHECK(a.hca.create_ah(a.context, pd, ah).error() == EHOSTUNREACH);
}
