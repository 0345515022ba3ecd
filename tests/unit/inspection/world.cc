#include "tests/unit/inspection/world.h"

namespace rocemu::inspection {

namespace {

constexpr TimeNs kMinute = 60'000'000'000;

struct Ring final : device::CompletionRing {
  explicit Ring(std::vector<transport::Completion>& into) : completions(into) {}
  bool push(const transport::Completion& completion) noexcept override {
    completions.push_back(completion);
    return true;
  }
  bool show() noexcept override { return false; }
  bool take_arm() noexcept override { return false; }
  bool take_over(CompletionRing&) noexcept override { return true; }
  std::vector<transport::Completion>& completions;
};

struct NoEvents final : device::EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

}  // namespace

World::World(uint32_t devices) : inspection(devices) {
  for (uint32_t i = 0; i < devices; ++i) {
    nodes.push_back(&fabric.add_node<sim::HcaNode>(sim::NodeOptions{}, inspection.decorate(i)));
    inspection.watch(i, nodes.back()->hca());
  }
}

void World::run() { REQUIRE(fabric.run(fabric.now_ns() + kMinute)); }

void World::delay(TimeNs one_way_ns) {
  for (sim::HcaNode* from : nodes)
    for (sim::HcaNode* to : nodes)
      fabric.set_link(*from, *to, {.delay_ns = static_cast<uint64_t>(one_way_ns)});
}

Program::Program(World& its_world, uint32_t index)
    : world(its_world),
      device(index),
      node(*its_world.nodes.at(index)),
      hca(node.hca()),
      memory(kBytes) {
  context =
      *hca.open_context(dma::AddressSpace::local(memory, kBase), std::make_unique<NoEvents>());
  pd = *hca.alloc_pd(context);
  cq = *hca.create_cq(context, {1024, 0, 0, 0}, std::make_unique<Ring>(completions));
  keys = *hca.reg_mr(context, {pd, 15, kBase, kBytes, kBase});
}

End Program::make_qp() {
  auto own = std::make_unique<Queues>();
  End end;
  end.queues = own.get();
  device::QpSpec spec;
  spec.pd = pd;
  spec.send_cq = spec.receive_cq = cq;
  spec.type = verbs::qp_type::kRc;
  spec.max_send_wr = spec.max_recv_wr = 64;
  const auto created = hca.create_qp(context, spec, std::move(own));
  REQUIRE(created);
  end.qp = created->qp;
  end.qpn = created->qpn;
  return end;
}

void Program::modify(const End& end, uint32_t state, uint32_t mask, const device::QpAttr& attr) {
  device::QpAttr next = attr;
  next.qp_state = state;
  REQUIRE(hca.modify_qp(context, end.qp, device::kState | mask, next));
}

device::QpAttr Program::usual_attributes(const End& end, const Program& peer, const End& peer_end) {
  device::QpAttr attr;
  attr.port_num = attr.ah.port_num = 1;
  attr.qp_access_flags = 15 | verbs::access::kFlushGlobal;
  attr.path_mtu = 3;
  attr.ah.is_global = true;
  attr.ah.dgid = peer.node.gid();
  attr.dest_qp_num = peer_end.qpn.value;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
  attr.timeout = 8;
  attr.min_rnr_timer = 12;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.rq_psn = peer_end.qpn.value;
  attr.sq_psn = end.qpn.value;
  return attr;
}

void Program::to_ready_to_receive(const End& end, const device::QpAttr& attr) {
  using namespace device;
  modify(end, 1, kPkeyIndex | kPort | kAccessFlags, attr);
  modify(end, 2, kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer, attr);
}

void Program::to_ready_to_send(const End& end, const device::QpAttr& attr) {
  using namespace device;
  modify(end, 3, kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxQpRdAtomic, attr);
}

void Program::reset(const End& end) { modify(end, 0, 0, {}); }

void Program::post(const End& end, sim::SendRequest request) {
  REQUIRE(end.queues->sends.post(std::move(request)));
  node.ring(end.qpn);
}

void Program::post_receive(const End& end, uint64_t wr_id) {
  end.queues->receives.post({.wr_id = wr_id, .sges = {sge(kBytes)}});
}

QpReport Program::report(const End& end) const {
  const auto report = world.inspection.describe_qp(device, context, end.qp);
  REQUIRE(report);
  return *report;
}

std::vector<Finding> Program::findings() {
  return world.inspection.take_findings(device, context, 100);
}

sim::SendRequest reach(const Program& from, const Program& to, transport::WorkOpcode opcode,
                       uint64_t wr_id, uint32_t length_bytes, uint64_t offset) {
  return {.wr_id = wr_id,
          .opcode = opcode,
          .remote_address = kBase + offset,
          .rkey = to.keys.rkey.value,
          .sges = {from.sge(length_bytes)}};
}

sim::SendRequest message(const Program& from, uint64_t wr_id, uint32_t length_bytes) {
  return {.wr_id = wr_id, .sges = {from.sge(length_bytes)}};
}

}  // namespace rocemu::inspection
