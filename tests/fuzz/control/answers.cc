// The answers about PDs, channels, CQs and QPs, and where those about others are found.
#include "tests/fuzz/control/answers.h"

#include <sys/mman.h>

#include <memory>
#include <utility>

#include "emulator/daemon/control/conversions.h"
#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {
namespace {

// enum ibv_qp_type and enum ibv_qp_state
constexpr uint32_t kRawPacket = 8;
constexpr uint32_t kXrcSend = 9;
constexpr uint32_t kXrcReceive = 10;
constexpr uint32_t kReadyToSend = 3;
constexpr uint32_t kSendQueueError = 5;
constexpr uint32_t kError = 6;
constexpr uint32_t kArmed = 2;  // enum ibv_mig_state

using AboutHandle = Exchange<rocemu_handle_message>;

bool same(const rocemu_qp_attr& a, const rocemu_qp_attr& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// Flags other than 0 and 1 do not survive; all else does.
rocemu_qp_attr plain(rocemu_qp_attr attr) {
  attr.en_sqd_async_notify = attr.en_sqd_async_notify != 0;
  attr.sq_draining = attr.sq_draining != 0;
  attr.ah.is_global = attr.ah.is_global != 0;
  attr.alt_ah.is_global = attr.alt_ah.is_global != 0;
  return attr;
}

bool is_power_of_two(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Counts a QP that is new, or gone, among the users of what it is made of.
void count_users(Model& model, const Model::Qp& qp, uint32_t change) {
  const auto count = [change](auto& objects, uint32_t handle) {
    if (handle == 0) return;
    const auto found = objects.find(handle);
    expect(found != objects.end(), "a QP has what it is made of");
    found->second.users += change;
  };
  count(model.pds, qp.pd);
  count(model.cqs, qp.send_cq);
  count(model.cqs, qp.receive_cq);
  count(model.srqs, qp.srq);
  count(model.xrcds, qp.xrcd);
}

void alloc_pd(Model& model, const AboutHandle& e) {
  if (e.status() != 0) return;
  expect(model.pds.emplace(e.reply<rocemu_handle_message>().handle, Model::Pd{}).second,
         "a new PD has a new handle");
}

void dealloc_pd(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.pds, e.request.handle),
         "a PD goes when nothing uses it");
  if (e.status() == 0) model.pds.erase(e.request.handle);
}

void create_channel(Model& model, const Exchange<rocemu_header>& e) {
  if (e.status() != 0) return;
  expect(model.channels.emplace(e.reply<rocemu_handle_message>().handle, Model::Channel{}).second,
         "a new channel has a new handle");
}

void destroy_channel(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.channels, e.request.handle),
         "a channel goes when nothing uses it");
  if (e.status() == 0) model.channels.erase(e.request.handle);
}

void create_cq(Model& model, const Exchange<rocemu_create_cq>& e) {
  if (e.status() != 0) return;
  const auto reply = e.reply<rocemu_create_cq_reply>();
  expect(reply.entries >= e.request.cqe && is_power_of_two(reply.entries),
         "a ring holds what was asked for");
  if (e.request.channel != 0)
    expect(reply.channel == e.request.channel && model.channels.contains(reply.channel),
           "a CQ has its channel");
  else if (reply.channel != 0)
    expect(model.channels.emplace(reply.channel, Model::Channel{}).second,
           "a CQ's own channel has a new handle");
  expect(model.cqs.emplace(reply.cq, Model::Cq{reply.channel, 0}).second,
         "a new CQ has a new handle");
  if (reply.channel != 0) ++model.channels.at(reply.channel).users;
}

void resize_cq(Model& model, const Exchange<rocemu_resize_cq>& e) {
  expect(may_be_refused(model.cqs, e.request.cq, e.status()),
         "a CQ that exists is resized, if what waits in it fits");
}

void moderate_cq(Model& model, const Exchange<rocemu_moderate_cq>& e) {
  expect(e.status() == (model.cqs.contains(e.request.cq) ? 0 : ENOENT),
         "a CQ that exists is moderated");
}

void destroy_cq(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.cqs, e.request.handle),
         "a CQ goes when no QP uses it");
  if (e.status() != 0) return;
  if (const uint32_t channel = model.cqs.at(e.request.handle).channel; channel != 0)
    --model.channels.at(channel).users;
  model.cqs.erase(e.request.handle);
}

void create_qp(Model& model, const Exchange<rocemu_create_qp>& e) {
  if (e.status() != 0) return;
  const auto reply = e.reply<rocemu_create_qp_reply>();
  const device::QpSpec used = daemon::to_qp_spec(e.request);
  expect(reply.sq_entries >= used.max_send_wr && reply.rq_entries >= used.max_recv_wr &&
             reply.max_send_sge >= used.max_send_sge && reply.max_recv_sge >= used.max_recv_sge &&
             reply.max_inline_data >= used.max_inline_data,
         "a QP has what was asked for");
  const bool sends = used.type != kXrcReceive;
  const bool receives = sends && used.type != kXrcSend;
  Model::Qp qp;
  if (sends) qp.pd = used.pd, qp.send_cq = used.send_cq;
  if (receives) qp.receive_cq = used.receive_cq, qp.srq = used.srq;
  if (!sends) qp.xrcd = used.xrcd;
  qp.takes_flows = used.type == kRawPacket;
  qp.qpn = reply.qp_num;
  qp.doorbell = reply.doorbell;
  expect(e.answer.fds.size() == 1, "a QP comes with its memory");
  qp.memory = map(e.answer.fds[0].get(), reply.memory_bytes);
  count_users(model, qp, 1);
  expect(model.qps.emplace(reply.qp, std::move(qp)).second, "a new QP has a new handle");
}

void open_qp(Model& model, const Exchange<rocemu_open_qp>& e) {
  if (e.status() != 0) return;
  expect(model.xrcds.contains(e.request.xrcd), "a QP is opened through a domain");
  Model::Qp qp;
  qp.xrcd = e.request.xrcd;
  qp.qpn = e.request.qp_num;
  count_users(model, qp, 1);
  expect(model.qps.emplace(e.reply<rocemu_handle_message>().handle, std::move(qp)).second,
         "an opened QP has a new handle");
}

void modify_qp(Model& model, const Exchange<rocemu_modify_qp>& e) {
  const device::QpAttr attr = daemon::to_qp_attr(e.request.attr);
  expect(same(daemon::from_qp_attr(attr), plain(e.request.attr)), "attributes survive both ways");
  if (e.status() != 0) return;
  const auto found = model.qps.find(e.request.qp);
  expect(found != model.qps.end(), "only a QP that exists is modified");
  const uint32_t state = e.reply<rocemu_handle_message>().handle;
  if ((e.request.attr_mask & device::kState) != 0)
    expect(state == e.request.attr.qp_state, "the state is the one asked for");
  found->second.state = state;
}

void query_qp(Model& model, const AboutHandle& e) {
  const auto found = model.qps.find(e.request.handle);
  expect((e.status() == 0) == (found != model.qps.end()), "a QP that exists can be queried");
  if (e.status() != 0) return;
  const Model::Qp& qp = found->second;
  const uint32_t state = e.reply<rocemu_query_qp_reply>().attr.qp_state;
  expect(e.reply<rocemu_query_qp_reply>().attr.path_mig_state <= kArmed,
         "a QP is in a state of migration");
  expect(state == qp.state || state == kError ||
             (qp.state == kReadyToSend && state == kSendQueueError) || qp.xrcd != 0,
         "a QP is in the state it was put in, or in an error state, or is another's too");
}

void destroy_qp(Model& model, const AboutHandle& e) {
  const auto found = model.qps.find(e.request.handle);
  const bool exists = found != model.qps.end();
  const bool in_use = exists && (!found->second.groups.empty() || found->second.flows > 0);
  expect(e.status() == (!exists  ? ENOENT
                        : in_use ? EBUSY
                                 : 0),
         "a QP goes when it is in no multicast group and no flow leads to it");
  if (e.status() != 0) return;
  count_users(model, found->second, ~uint32_t{0});
  model.qps.erase(found);
}

constexpr Check kQueueChecks[] = {
    {ROCEMU_OP_ALLOC_PD, &CheckOf<alloc_pd>::run},
    {ROCEMU_OP_DEALLOC_PD, &CheckOf<dealloc_pd>::run},
    {ROCEMU_OP_CREATE_CHANNEL, &CheckOf<create_channel>::run},
    {ROCEMU_OP_DESTROY_CHANNEL, &CheckOf<destroy_channel>::run},
    {ROCEMU_OP_CREATE_CQ, &CheckOf<create_cq>::run},
    {ROCEMU_OP_RESIZE_CQ, &CheckOf<resize_cq>::run},
    {ROCEMU_OP_MODERATE_CQ, &CheckOf<moderate_cq>::run},
    {ROCEMU_OP_DESTROY_CQ, &CheckOf<destroy_cq>::run},
    {ROCEMU_OP_CREATE_QP, &CheckOf<create_qp>::run},
    {ROCEMU_OP_OPEN_QP, &CheckOf<open_qp>::run},
    {ROCEMU_OP_MODIFY_QP, &CheckOf<modify_qp>::run},
    {ROCEMU_OP_QUERY_QP, &CheckOf<query_qp>::run},
    {ROCEMU_OP_DESTROY_QP, &CheckOf<destroy_qp>::run},
};

}  // namespace

Mapping map(int fd, size_t size_bytes) {
  void* const memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  expect(memory != MAP_FAILED, "shared memory can be mapped");
  return {static_cast<std::byte*>(memory),
          [size_bytes](std::byte* data) { ::munmap(data, size_bytes); }};
}

void check_answer(Model& model, std::span<const std::byte> request, const Answer& answer) {
  const uint32_t op = answer.header().op;
  for (const std::span<const Check> checks : {std::span<const Check>(kQueueChecks), memory_checks(),
                                              service_checks(), flow_checks(), inspection_checks()})
    for (const Check& check : checks)
      if (check.op == op) return check.run(model, request, answer);
}

}  // namespace rocemu::fuzz
