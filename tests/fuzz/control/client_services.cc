// What verbs_shim/abi/services.h asks for.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_work_queues.h"
#include "tests/fuzz/control/client.h"
#include "tests/fuzz/control/outcome.h"
#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

bool Client::dispatch_service(const daemon::Request& request, uint32_t handle) {
  switch (request.header.op) {
    case ROCEMU_OP_CREATE_AH:
      create_ah(std::get<rocemu_create_ah>(request.body));
      return true;
    case ROCEMU_OP_DESTROY_AH:
      destroy_ah(handle);
      return true;
    case ROCEMU_OP_CREATE_SRQ:
      create_srq(std::get<rocemu_create_srq>(request.body));
      return true;
    case ROCEMU_OP_MODIFY_SRQ:
      limit_srq(std::get<rocemu_srq_limit>(request.body));
      return true;
    case ROCEMU_OP_RESIZE_SRQ:
      resize_srq(std::get<rocemu_resize_srq>(request.body));
      return true;
    case ROCEMU_OP_QUERY_SRQ: {
      const uint32_t srq = std::get<rocemu_srq_limit>(request.body).srq;
      expect(hca_.srq_limit(context_->id(), srq).has_value() == model_.srqs.contains(srq),
             "an SRQ that exists can be queried");
      return true;
    }
    case ROCEMU_OP_DESTROY_SRQ:
      destroy_srq(handle);
      return true;
    case ROCEMU_OP_OPEN_XRCD:
      open_xrcd(std::get<rocemu_open_xrcd>(request.body));
      return true;
    case ROCEMU_OP_CLOSE_XRCD:
      close_xrcd(handle);
      return true;
    case ROCEMU_OP_OPEN_QP:
      open_qp(std::get<rocemu_open_qp>(request.body));
      return true;
    case ROCEMU_OP_ATTACH_MCAST:
    case ROCEMU_OP_DETACH_MCAST:
      change_mcast(std::get<rocemu_mcast>(request.body));
      return true;
    default:
      return false;
  }
}

void Client::create_ah(const rocemu_create_ah& message) {
  const auto ah = hca_.create_ah(context_->id(), message.pd, daemon::to_ah_attr(message.attr));
  if (!ah) return;
  expect(model_.pds.contains(message.pd), "an address handle has a PD");
  expect(model_.ahs.emplace(*ah, Model::Ah{message.pd}).second,
         "a new address handle has a new handle");
  ++model_.pds.at(message.pd).users;
}

void Client::destroy_ah(uint32_t handle) {
  const int outcome = hca_.destroy_ah(context_->id(), handle);
  const auto found = model_.ahs.find(handle);
  expect(outcome == (found == model_.ahs.end() ? EINVAL : 0), "an address handle can always go");
  if (outcome != 0) return;
  --model_.pds.at(found->second.pd).users;
  model_.ahs.erase(found);
}

void Client::create_srq(const rocemu_create_srq& message) {
  const device::SrqSpec spec = daemon::to_srq_spec(message);
  if (device::check_srq(hca_.config().limits, spec) != 0) return;
  const daemon::SrqLayout layout = daemon::lay_out_srq(hca_.config().limits, spec);
  expect(layout.ring.entries >= spec.max_wr && layout.ring.max_sge >= spec.max_sge,
         "an SRQ has what was asked for");
  daemon::SharedMemory memory("fuzz-srq", layout.memory_bytes);
  std::byte* const data = memory.data();
  const auto created =
      hca_.create_srq(context_->id(), spec,
                      std::make_unique<daemon::SharedReceiveRing>(std::move(memory), layout.ring));
  if (!created) return;
  Model::Srq srq;
  srq.pd = spec.pd;
  srq.memory = data;
  srq.number = created->number.value;
  expect(model_.pds.contains(srq.pd), "an SRQ has a PD");
  ++model_.pds.at(srq.pd).users;
  if (spec.xrc) {
    srq.cq = spec.cq;
    srq.xrcd = spec.xrcd;
    expect(model_.cqs.contains(srq.cq) && model_.xrcds.contains(srq.xrcd),
           "an SRQ of XRC has a CQ and a domain");
    ++model_.cqs.at(srq.cq).users;
    ++model_.xrcds.at(srq.xrcd).users;
  }
  expect(model_.srqs.emplace(created->srq, srq).second, "a new SRQ has a new handle");
}

void Client::limit_srq(const rocemu_srq_limit& message) {
  const int outcome = hca_.set_srq_limit(context_->id(), message.srq, message.limit);
  expect(outcome == 0 ? model_.srqs.contains(message.srq) : outcome == EINVAL,
         "an SRQ that exists takes a limit that it can reach");
}

void Client::resize_srq(const rocemu_resize_srq& message) {
  const device::SrqSpec spec{.max_wr = message.max_wr, .max_sge = message.max_sge};
  if (device::check_srq(hca_.config().limits, spec) != 0) return;
  const daemon::SrqLayout layout = daemon::lay_out_srq(hca_.config().limits, spec);
  daemon::SharedMemory memory("fuzz-srq", layout.memory_bytes);
  std::byte* const data = memory.data();
  const int outcome =
      hca_.resize_srq(context_->id(), message.srq, spec.max_wr,
                      std::make_unique<daemon::SharedReceiveRing>(std::move(memory), layout.ring));
  expect(outcome == 0 ? model_.srqs.contains(message.srq) : outcome == EINVAL,
         "an SRQ that exists is resized, if what waits in it fits");
  if (outcome == 0) model_.srqs.at(message.srq).memory = data;
}

void Client::destroy_srq(uint32_t handle) {
  const auto counts = hca_.destroy_srq(context_->id(), handle);
  const int outcome = counts ? 0 : counts.error();
  expect(outcome == expected_outcome(model_.srqs, handle), "an SRQ goes when no QP uses it");
  if (outcome != 0) return;
  const Model::Srq& srq = model_.srqs.at(handle);
  --model_.pds.at(srq.pd).users;
  if (srq.cq != 0) --model_.cqs.at(srq.cq).users;
  if (srq.xrcd != 0) --model_.xrcds.at(srq.xrcd).users;
  model_.srqs.erase(handle);
}

// The file of a domain stands in the message here: that of every program, or none.
void Client::open_xrcd(const rocemu_open_xrcd& message) {
  device::XrcdSpec spec;
  spec.create = (message.flags & ROCEMU_XRCD_CREATE) != 0;
  spec.exclusive = (message.flags & ROCEMU_XRCD_EXCLUSIVE) != 0;
  if ((message.header.cookie & 1) != 0) spec.file = device::FileIdentity{1, 1};
  const auto xrcd = hca_.open_xrcd(context_->id(), spec);
  if (!xrcd) return;
  expect(model_.xrcds.emplace(*xrcd, Model::Xrcd{}).second, "a new domain has a new handle");
}

void Client::close_xrcd(uint32_t handle) {
  const int outcome = hca_.close_xrcd(context_->id(), handle);
  expect(outcome == expected_outcome(model_.xrcds, handle), "a domain goes when nothing is in it");
  if (outcome == 0) model_.xrcds.erase(handle);
}

void Client::open_qp(const rocemu_open_qp& message) {
  const auto opened = context_->open_qp(message.xrcd, wire::Qpn{message.qp_num}, 0);
  if (!opened) return;
  expect(model_.xrcds.contains(message.xrcd), "a QP is opened through a domain");
  Model::Qp qp;
  qp.xrcd = message.xrcd;
  qp.qpn = opened->qpn.value;
  count_users(qp, 1);
  expect(model_.qps.emplace(opened->qp, std::move(qp)).second, "an opened QP has a new handle");
}

void Client::change_mcast(const rocemu_mcast& message) {
  wire::Gid group;
  std::copy(std::begin(message.gid), std::end(message.gid), group.bytes.begin());
  const bool attach = message.header.op == ROCEMU_OP_ATTACH_MCAST;
  const int outcome = attach ? hca_.attach_multicast(context_->id(), message.qp, group)
                             : hca_.detach_multicast(context_->id(), message.qp, group);
  if (outcome != 0) return;
  const auto found = model_.qps.find(message.qp);
  expect(found != model_.qps.end(), "only a QP that exists joins and leaves");
  if (attach) found->second.groups.insert(group.bytes);
  if (!attach) expect(found->second.groups.erase(group.bytes) == 1, "who leaves was there");
}

}  // namespace rocemu::fuzz
