#include "tests/fuzz/control/client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "emulator/daemon/rings/shared_work_queues.h"
#include "tests/fuzz/control/outcome.h"
#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

namespace {

constexpr uint32_t kDoorbellSlots = 64;
// enum ibv_qp_type and enum ibv_qp_state
constexpr uint32_t kXrcSend = 9;
constexpr uint32_t kXrcReceive = 10;
constexpr uint32_t kReadyToSend = 3;
constexpr uint32_t kSendQueueError = 5;
constexpr uint32_t kError = 6;

// Every other event finds the pipe full.
struct Events final : device::EventChannel {
  bool completion_event(uint64_t) noexcept override { return full = !full; }
  bool async_event(uint64_t, uint32_t) noexcept override { return full = !full; }
  bool full = false;
};

bool same(const rocemu_qp_attr& a, const rocemu_qp_attr& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// Reserved fields and flags other than 0 and 1 do not survive; all else does.
rocemu_qp_attr plain(rocemu_qp_attr attr) {
  attr.en_sqd_async_notify = attr.en_sqd_async_notify != 0;
  attr.sq_draining = attr.sq_draining != 0;
  attr.ah.is_global = attr.ah.is_global != 0;
  attr.alt_ah.is_global = attr.alt_ah.is_global != 0;
  return attr;
}

}  // namespace

Client::Client(device::Hca& hca, daemon::WakeSet& wake_set, const daemon::EngineClock& clock,
               uint64_t token)
    : hca_(hca), clock_(clock), memory_(kMemoryBytes) {
  daemon::SharedMemory page("fuzz-doorbells", sizeof(rocemu_doorbell_page));
  doorbell_page_ = page.data();
  auto doorbells = std::make_unique<daemon::Doorbells>(std::move(page), kDoorbellSlots);
  const auto id =
      hca.open_context(dma::AddressSpace::local(memory_, kAddress), std::make_unique<Events>());
  context_ = std::make_unique<daemon::EngineContext>(hca, id.value(), std::move(doorbells),
                                                     std::make_unique<daemon::WakeFd>(wake_set));
  hca.set_token(id.value(), {token, 0});
}

bool Client::receive(std::span<const std::byte> datagram) {
  const auto request = daemon::decode(datagram);
  if (!request) {
    expect(daemon::to_string(request.error()) != nullptr, "each fault of a message has a name");
    return false;
  }
  expect(request->header.length == datagram.size() || request->error == EPROTO,
         "a message is as long as it says");
  if (request->error == 0) dispatch(*request);
  return true;
}

void Client::dispatch(const daemon::Request& request) {
  const uint32_t handle = request.handle();
  switch (request.header.op) {
    case ROCEMU_OP_ALLOC_PD:
      return alloc_pd();
    case ROCEMU_OP_DEALLOC_PD:
      return dealloc_pd(handle);
    case ROCEMU_OP_CREATE_CHANNEL:
      return create_channel();
    case ROCEMU_OP_DESTROY_CHANNEL:
      return destroy_channel(handle);
    case ROCEMU_OP_CREATE_CQ:
      return create_cq(std::get<rocemu_create_cq>(request.body));
    case ROCEMU_OP_DESTROY_CQ:
      return destroy_cq(handle);
    case ROCEMU_OP_CREATE_QP:
      return create_qp(std::get<rocemu_create_qp>(request.body));
    case ROCEMU_OP_MODIFY_QP:
      return modify_qp(std::get<rocemu_modify_qp>(request.body));
    case ROCEMU_OP_QUERY_QP:
      return query_qp(handle);
    case ROCEMU_OP_DESTROY_QP:
      return destroy_qp(handle);
    default:
      if (!dispatch_memory(request, handle)) dispatch_service(request, handle);
      return;
  }
}

void Client::alloc_pd() {
  const auto pd = hca_.alloc_pd(context_->id());
  if (!pd) return;
  expect(model_.pds.emplace(*pd, Model::Pd{}).second, "a new PD has a new handle");
}

void Client::dealloc_pd(uint32_t handle) {
  const int outcome = hca_.dealloc_pd(context_->id(), handle);
  expect(outcome == expected_outcome(model_.pds, handle), "a PD goes when nothing uses it");
  if (outcome == 0) model_.pds.erase(handle);
}

void Client::create_channel() {
  const auto channel = hca_.create_channel(context_->id(), std::make_unique<Events>());
  if (!channel) return;
  expect(model_.channels.emplace(*channel, Model::Channel{}).second,
         "a new channel has a new handle");
}

void Client::destroy_channel(uint32_t handle) {
  const int outcome = hca_.destroy_channel(context_->id(), handle);
  expect(outcome == expected_outcome(model_.channels, handle),
         "a channel goes when nothing uses it");
  if (outcome == 0) model_.channels.erase(handle);
}

void Client::create_cq(const rocemu_create_cq& message) {
  const device::CqSpec spec = daemon::to_cq_spec(message);
  if (device::check_cq(hca_.config().limits, spec) != 0) return;
  const uint32_t entries = daemon::cq_entries(spec.cqe);
  expect(entries >= spec.cqe && (entries & (entries - 1)) == 0, "a ring holds what was asked for");
  const auto cq = hca_.create_cq(
      context_->id(), spec,
      std::make_unique<daemon::SharedCompletionRing>(
          daemon::SharedMemory("fuzz-cq", daemon::cq_memory_bytes(entries)), entries, host_));
  if (!cq) return;
  expect(spec.channel == 0 || model_.channels.contains(spec.channel), "a CQ has its channel");
  expect(model_.cqs.emplace(*cq, Model::Cq{spec.channel, 0}).second, "a new CQ has a new handle");
  if (spec.channel != 0) ++model_.channels.at(spec.channel).users;
}

void Client::destroy_cq(uint32_t handle) {
  const auto counts = hca_.destroy_cq(context_->id(), handle);
  const int outcome = counts ? 0 : counts.error();
  expect(outcome == expected_outcome(model_.cqs, handle), "a CQ goes when no QP uses it");
  if (outcome != 0) return;
  if (const uint32_t channel = model_.cqs.at(handle).channel; channel != 0)
    --model_.channels.at(channel).users;
  model_.cqs.erase(handle);
}

void Client::create_qp(const rocemu_create_qp& message) {
  const device::DeviceLimits& limits = hca_.config().limits;
  const device::QpSpec spec = daemon::to_qp_spec(message);
  if (device::check_qp(limits, spec) != 0) return;
  const daemon::QpLayout layout = daemon::lay_out_qp(limits, spec);
  const device::QpSpec used = device::without_unused_queues(spec);
  expect(layout.send.entries >= used.max_send_wr && layout.receive.entries >= used.max_recv_wr &&
             layout.send.max_sge >= used.max_send_sge &&
             layout.receive.max_sge >= used.max_recv_sge &&
             layout.max_inline_data >= used.max_inline_data,
         "a QP has what was asked for");
  daemon::SharedMemory memory("fuzz-qp", layout.memory_bytes);
  std::byte* const data = memory.data();
  const auto created = context_->create_qp(
      spec,
      std::make_unique<daemon::SharedWorkQueues>(std::move(memory), layout, limits.max_msg_size));
  if (!created) return;
  const bool sends = spec.type != kXrcReceive;
  const bool receives = sends && spec.type != kXrcSend;
  Model::Qp qp;
  if (sends) qp.pd = spec.pd, qp.send_cq = spec.send_cq;
  if (receives) qp.receive_cq = spec.receive_cq, qp.srq = spec.srq;
  if (!sends) qp.xrcd = spec.xrcd;
  qp.qpn = created->qp.qpn.value;
  qp.doorbell = created->doorbell;
  qp.memory = data;
  count_users(qp, 1);
  expect(model_.qps.emplace(created->qp.qp, std::move(qp)).second, "a new QP has a new handle");
}

void Client::count_users(const Model::Qp& qp, uint32_t change) {
  const auto count = [change](auto& objects, uint32_t handle) {
    if (handle == 0) return;
    const auto found = objects.find(handle);
    expect(found != objects.end(), "a QP has what it is made of");
    found->second.users += change;
  };
  count(model_.pds, qp.pd);
  count(model_.cqs, qp.send_cq);
  count(model_.cqs, qp.receive_cq);
  count(model_.srqs, qp.srq);
  count(model_.xrcds, qp.xrcd);
}

void Client::modify_qp(const rocemu_modify_qp& message) {
  const device::QpAttr attr = daemon::to_qp_attr(message.attr);
  expect(same(daemon::from_qp_attr(attr), plain(message.attr)), "attributes survive both ways");
  const auto state = hca_.modify_qp(context_->id(), message.qp, message.attr_mask, attr);
  if (!state) return;
  const auto found = model_.qps.find(message.qp);
  expect(found != model_.qps.end(), "only a QP that exists is modified");
  if ((message.attr_mask & device::kState) != 0)
    expect(static_cast<uint32_t>(*state) == message.attr.qp_state,
           "the state is the one asked for");
  found->second.state = static_cast<uint32_t>(*state);
}

void Client::query_qp(uint32_t handle) {
  const auto attr = hca_.query_qp(context_->id(), handle);
  const auto found = model_.qps.find(handle);
  expect(attr.has_value() == (found != model_.qps.end()), "a QP that exists can be queried");
  if (!attr) return;
  const Model::Qp& qp = found->second;
  expect(attr->qp_state == qp.state || attr->qp_state == kError ||
             (qp.state == kReadyToSend && attr->qp_state == kSendQueueError) || qp.xrcd != 0,
         "a QP is in the state it was put in, or in an error state, or is another's too");
}

void Client::destroy_qp(uint32_t handle) {
  const auto counts = context_->destroy_qp(handle);
  const auto found = model_.qps.find(handle);
  const int outcome = counts ? 0 : counts.error();
  expect(outcome == (found == model_.qps.end()      ? EINVAL
                     : found->second.groups.empty() ? 0
                                                    : EBUSY),
         "a QP goes when it is in no multicast group");
  if (outcome != 0) return;
  count_users(found->second, ~uint32_t{0});
  model_.qps.erase(found);
}

void Client::scan_doorbells() {
  context_->doorbells().scan([&](wire::Qpn qpn) {
    expect(
        std::ranges::any_of(model_.qps, [&](const auto& qp) { return qp.second.qpn == qpn.value; }),
        "a doorbell rings for a QP of its own context");
    hca_.endpoint().on_doorbell(qpn);
  });
}

void Client::scribble(uint32_t index, std::span<const std::byte> entry) {
  auto& page = *reinterpret_cast<rocemu_doorbell_page*>(doorbell_page_);
  page.groups[0].summary = ~uint64_t{0};
  page.groups[0].words[0] |= uint64_t{1} << (index % 64);
  // Request by request over the first slot, which is enough of a program here.
  const auto post = [entry](std::byte* memory) {
    auto& header = *reinterpret_cast<rocemu_queue_header*>(memory);
    std::memcpy(memory + sizeof(header), entry.data(), entry.size());
    ++header.sq_producer;
    ++header.rq_producer;
  };
  for (const auto& [handle, srq] : model_.srqs) post(srq.memory);
  if (model_.qps.empty()) return;
  const Model::Qp& qp = std::next(model_.qps.begin(), index % model_.qps.size())->second;
  if (qp.memory == nullptr) return;
  page.groups[0].words[0] |= uint64_t{1} << qp.doorbell;
  post(qp.memory);
}

}  // namespace rocemu::fuzz
