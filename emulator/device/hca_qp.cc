// QPs of the HCA: creation, state changes, queries.
#include <algorithm>
#include <cerrno>

#include "emulator/device/hca_impl.h"
#include "emulator/device/path.h"

namespace rocemu::device {

namespace {

using transport::QpState;

constexpr uint32_t kTypeRc = 2;  // IBV_QPT_RC
constexpr uint32_t kTypeLast = 0xff;
constexpr uint32_t kRemoteAccess =
    transport::kRemoteWrite | transport::kRemoteRead | transport::kRemoteAtomic;
// Programs give a QP the flags of their regions; these say nothing about it and are taken as Linux
// takes them.
constexpr uint32_t kAccessOfRegionsAlone =
    transport::kLocalWrite | kWindowBind | kZeroBased | kOnDemand;
constexpr uint32_t kMtu4096 = 5;  // IBV_MTU_4096

constexpr uint32_t mtu_bytes(uint32_t ibv_mtu) { return 128u << ibv_mtu; }

// Copies the attributes that `mask` names.
void merge(QpAttr& to, const QpAttr& from, uint32_t mask) {
  if (mask & kEnSqdAsyncNotify) to.en_sqd_async_notify = from.en_sqd_async_notify;
  if (mask & kAccessFlags) to.qp_access_flags = from.qp_access_flags;
  if (mask & kPkeyIndex) to.pkey_index = from.pkey_index;
  if (mask & kPort) to.port_num = from.port_num;
  if (mask & kAv) to.ah = from.ah;
  if (mask & kPathMtu) to.path_mtu = from.path_mtu;
  if (mask & kTimeout) to.timeout = from.timeout;
  if (mask & kRetryCount) to.retry_cnt = from.retry_cnt;
  if (mask & kRnrRetry) to.rnr_retry = from.rnr_retry;
  if (mask & kRqPsn) to.rq_psn = from.rq_psn & wire::Psn::kMask;
  if (mask & kMaxQpRdAtomic) to.max_rd_atomic = from.max_rd_atomic;
  if (mask & kMinRnrTimer) to.min_rnr_timer = from.min_rnr_timer;
  if (mask & kSqPsn) to.sq_psn = from.sq_psn & wire::Psn::kMask;
  if (mask & kMaxDestRdAtomic) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (mask & kPathMigState) to.path_mig_state = from.path_mig_state;
  if (mask & kDestQpn) to.dest_qp_num = from.dest_qp_num;
}

}  // namespace

int check_qp(const DeviceLimits& limits, const QpSpec& spec) {
  if (spec.type > kTypeLast) return EINVAL;
  if (spec.type != kTypeRc) return EOPNOTSUPP;
  const bool fits = spec.max_send_wr <= limits.max_qp_wr && spec.max_recv_wr <= limits.max_qp_wr &&
                    spec.max_send_sge <= limits.max_sge && spec.max_recv_sge <= limits.max_sge &&
                    spec.max_inline_data <= limits.max_inline_data;
  return fits ? 0 : EINVAL;
}

Result<CreatedQp> Hca::create_qp(ContextId id, const QpSpec& spec,
                                 std::unique_ptr<WorkQueues> queues) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(EINVAL);
  if (const int error = check_qp(impl_->config.limits, spec)) return tl::unexpected(error);
  Pd* pd = context->pds.find(spec.pd);
  Cq* send_cq = context->cqs.find(spec.send_cq);
  Cq* receive_cq = context->cqs.find(spec.receive_cq);
  if (pd == nullptr || send_cq == nullptr || receive_cq == nullptr) return tl::unexpected(EINVAL);

  const auto qpn =
      impl_->endpoint.create_rc({pd->id, &queues->send(), &queues->receive(), send_cq, receive_cq});
  if (!qpn) return tl::unexpected(ENOMEM);
  auto qp = std::make_unique<Qp>();
  qp->context = context;
  qp->spec = spec;
  qp->qpn = *qpn;
  qp->pd = pd;
  qp->send_cq = send_cq;
  qp->receive_cq = receive_cq;
  qp->queues = std::move(queues);
  qp->queues->show_state(QpState::reset);
  ++pd->users;
  ++send_cq->users;
  ++receive_cq->users;
  ++impl_->totals.qps;
  impl_->qps_by_number.emplace(qpn->value, qp.get());
  return CreatedQp{context->qps.insert(std::move(qp)), *qpn};
}

void Hca::Impl::destroy_qp(Qp& qp) {
  endpoint.destroy(qp.qpn);
  qps_by_number.erase(qp.qpn.value);
  --qp.pd->users;
  --qp.send_cq->users;
  --qp.receive_cq->users;
  --totals.qps;
}

Result<EventCounts> Hca::destroy_qp(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Qp* qp = context == nullptr ? nullptr : context->qps.find(handle);
  if (qp == nullptr) return tl::unexpected(EINVAL);
  const EventCounts counts{0, qp->async_events_written};
  impl_->destroy_qp(*qp);
  context->qps.erase(handle);
  return counts;
}

// Values that no transition makes right.
int Hca::Impl::check_attributes(const QpAttr& attr, uint32_t mask) const {
  const DeviceLimits& limits = config.limits;
  if ((mask & kAltPath) != 0) return EOPNOTSUPP;
  const bool fits =
      (!(mask & kAccessFlags) ||
       (attr.qp_access_flags & ~(kRemoteAccess | kAccessOfRegionsAlone)) == 0) &&
      (!(mask & kPkeyIndex) || attr.pkey_index == 0) && (!(mask & kPort) || attr.port_num == 1) &&
      (!(mask & kAv) || attr.ah.port_num == 1) &&
      (!(mask & kPathMtu) || (attr.path_mtu >= 1 && attr.path_mtu <= kMtu4096 &&
                              mtu_bytes(attr.path_mtu) <= config.port.mtu_bytes)) &&
      (!(mask & kTimeout) || attr.timeout < 32) && (!(mask & kRetryCount) || attr.retry_cnt < 8) &&
      (!(mask & kRnrRetry) || attr.rnr_retry < 8) &&
      (!(mask & kMinRnrTimer) || attr.min_rnr_timer < 32) &&
      (!(mask & kMaxQpRdAtomic) || attr.max_rd_atomic <= limits.max_qp_rd_atom) &&
      (!(mask & kMaxDestRdAtomic) || attr.max_dest_rd_atomic <= limits.max_qp_rd_atom) &&
      (!(mask & kDestQpn) || attr.dest_qp_num <= 0xffffff);
  return fits ? 0 : EINVAL;
}

Result<transport::QpAttributes> Hca::Impl::transport_attributes(const Qp& qp, const QpAttr& attr,
                                                                bool path_known) {
  transport::QpAttributes result;
  if (path_known) {
    const auto path =
        make_path(config.port, attr.ah, qp.qpn, wire::Qpn{attr.dest_qp_num}, resolver);
    if (!path) return tl::unexpected(path.error());
    result.path = *path;
    result.path_mtu_bytes = mtu_bytes(attr.path_mtu);
  }
  result.remote_qpn = wire::Qpn{attr.dest_qp_num};
  result.receive_psn = wire::Psn(attr.rq_psn);
  result.send_psn = wire::Psn(attr.sq_psn);
  result.access = attr.qp_access_flags & kRemoteAccess;
  result.max_rd_atomic = attr.max_rd_atomic;
  result.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  result.min_rnr_timer = attr.min_rnr_timer;
  result.timeout = attr.timeout;
  result.retry_count = attr.retry_cnt;
  result.rnr_retry = attr.rnr_retry;
  result.notify_drained = attr.en_sqd_async_notify;
  return result;
}

Result<QpState> Hca::modify_qp(ContextId id, Handle handle, uint32_t mask, const QpAttr& attr) {
  Context* context = impl_->find_context(id);
  Qp* qp = context == nullptr ? nullptr : context->qps.find(handle);
  if (qp == nullptr) return tl::unexpected(EINVAL);
  const QpState from = impl_->endpoint.state(qp->qpn);
  if ((mask & kCurState) != 0 && attr.cur_qp_state != static_cast<uint32_t>(from))
    return tl::unexpected(EINVAL);
  if ((mask & kState) != 0 && attr.qp_state > static_cast<uint32_t>(QpState::error))
    return tl::unexpected(EINVAL);
  const QpState to = (mask & kState) != 0 ? static_cast<QpState>(attr.qp_state) : from;
  if (const int error = check_rc_transition(from, to, mask)) return tl::unexpected(error);
  if (const int error = impl_->check_attributes(attr, mask)) return tl::unexpected(error);

  QpAttr merged = to == QpState::reset ? QpAttr{} : qp->attr;
  merge(merged, attr, mask);
  const bool path_known = to >= QpState::ready_to_receive && to <= QpState::send_queue_drain;
  const auto attributes = impl_->transport_attributes(*qp, merged, path_known);
  if (!attributes) return tl::unexpected(attributes.error());

  qp->attr = merged;
  // ERROR is shown before the queues are flushed, so that a receive posted meanwhile rings.
  qp->queues->show_state(to);
  impl_->endpoint.modify(qp->qpn, to, *attributes);
  if (to == QpState::reset) qp->queues->reset();
  return to;
}

Result<QpAttr> Hca::query_qp(ContextId id, Handle handle) const {
  Context* context = impl_->find_context(id);
  const Qp* qp = context == nullptr ? nullptr : context->qps.find(handle);
  if (qp == nullptr) return tl::unexpected(EINVAL);
  QpAttr attr = qp->attr;
  attr.qp_state = static_cast<uint32_t>(impl_->endpoint.state(qp->qpn));
  attr.cur_qp_state = attr.qp_state;
  attr.sq_draining = impl_->endpoint.draining(qp->qpn);
  return attr;
}

}  // namespace rocemu::device
