// QPs of the HCA: creation, state changes, queries.
#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/verbs/numbers.h"
#include "emulator/device/attributes/path.h"
#include "emulator/device/hca_impl.h"
#include "emulator/transport/qp/wait_reason.h"

namespace rocemu::device {

namespace {

using transport::QpState;
using transport::Service;

constexpr uint32_t kRemoteAccess = transport::kRemoteWrite | transport::kRemoteRead |
                                   transport::kRemoteAtomic | kFlushGlobal | kFlushPersistent;
// Programs give a QP the flags of their regions; these say nothing about it and are taken as Linux
// takes them.
constexpr uint32_t kAccessOfRegionsAlone =
    transport::kLocalWrite | kWindowBind | kZeroBased | kOnDemand;

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
  if (mask & kQkey) to.qkey = from.qkey;
  if (mask & kRqPsn) to.rq_psn = from.rq_psn & wire::Psn::kMask;
  if (mask & kMaxQpRdAtomic) to.max_rd_atomic = from.max_rd_atomic;
  if (mask & kMinRnrTimer) to.min_rnr_timer = from.min_rnr_timer;
  if (mask & kSqPsn) to.sq_psn = from.sq_psn & wire::Psn::kMask;
  if (mask & kMaxDestRdAtomic) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (mask & kAltPath) {
    to.alt_ah = from.alt_ah;
    to.alt_pkey_index = from.alt_pkey_index;
    to.alt_port_num = from.alt_port_num;
    to.alt_timeout = from.alt_timeout;
  }
  if (mask & kDestQpn) to.dest_qp_num = from.dest_qp_num;
  if (mask & kRateLimit) to.rate_limit = from.rate_limit;
}

std::optional<Service> service_of(uint32_t type) {
  switch (type) {
    case verbs::qp_type::kRc:
      return Service::rc;
    case verbs::qp_type::kUc:
      return Service::uc;
    case verbs::qp_type::kUd:
      return Service::ud;
    case verbs::qp_type::kRawPacket:
      return Service::raw_packet;
    case verbs::qp_type::kXrcSend:
      return Service::xrc_send;
    case verbs::qp_type::kXrcReceive:
      return Service::xrc_receive;
    default:
      return std::nullopt;
  }
}

bool sends(Service service) { return service != Service::xrc_receive; }
bool receives(Service service) {
  return service != Service::xrc_send && service != Service::xrc_receive;
}

// Messages to a tag-matching SRQ complete to its CQ, and the QP's send queue reads the payloads
// that they offer.
void match_tags(const Qp& qp, QpBody& body, transport::QpResources& resources) {
  body.tags = std::make_unique<TagMatcher>(*qp.srq->tags, body.queues->send(), *qp.send_cq,
                                           *qp.srq->cq, qp.srq->pd().id);
  resources.tags = body.tags.get();
  resources.send_queue = body.tags.get();
  resources.send_cq = body.tags.get();
  resources.receive_cq = qp.srq->cq;
}

}  // namespace

QpSpec without_unused_queues(QpSpec spec) {
  const std::optional<Service> service = service_of(spec.type);
  if (service && !sends(*service)) spec.max_send_wr = spec.max_send_sge = spec.max_inline_data = 0;
  if (spec.srq != 0 || (service && !receives(*service))) spec.max_recv_wr = spec.max_recv_sge = 0;
  return spec;
}

int check_qp(const DeviceLimits& limits, const QpSpec& spec) {
  if (spec.type > verbs::qp_type::kDriver) return EINVAL;
  if (!service_of(spec.type)) return EOPNOTSUPP;
  const bool fits = spec.max_send_wr <= limits.max_qp_wr && spec.max_recv_wr <= limits.max_qp_wr &&
                    spec.max_send_sge <= limits.max_sge && spec.max_recv_sge <= limits.max_sge &&
                    spec.max_inline_data <= limits.max_inline_data &&
                    spec.max_tso_header <= transport::kMaxTsoHeaderBytes &&
                    (spec.max_tso_header == 0 || service_of(spec.type) == Service::raw_packet);
  return fits ? 0 : EINVAL;
}

// Finds what the request names: all that its service needs, and nothing that it has no use for.
int Hca::Impl::find_parts(Context& context, const QpSpec& spec, Qp& qp) const {
  const Service service = *service_of(spec.type);
  const bool xrc_receive = service == Service::xrc_receive;
  if (!xrc_receive) qp.pd = context.pds.find(spec.pd);
  if (sends(service)) qp.send_cq = context.cqs.find(spec.send_cq);
  if (receives(service)) qp.receive_cq = context.cqs.find(spec.receive_cq);
  if (receives(service) && spec.srq != 0) qp.srq = context.srqs.find(spec.srq);
  if (xrc_receive) qp.xrcd = context.xrcds.find(spec.xrcd);
  const bool found =
      (xrc_receive || qp.pd != nullptr) && (!sends(service) || qp.send_cq != nullptr) &&
      (!receives(service) || qp.receive_cq != nullptr) && (!xrc_receive || qp.xrcd != nullptr) &&
      (!receives(service) || spec.srq == 0 || qp.srq != nullptr);
  if (!found) return ENOENT;
  const bool may_match = service == Service::rc;
  const bool fits =
      (qp.srq != nullptr ? !qp.srq->spec().xrc && (may_match || !qp.srq->spec().tag_matching)
                         : spec.srq == 0) &&
      (qp.xrcd != nullptr || spec.xrcd == 0);
  return fits ? 0 : EINVAL;
}

Result<CreatedQp> Hca::create_qp(ContextId id, const QpSpec& spec,
                                 std::unique_ptr<WorkQueues> queues) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (const int error = check_qp(impl_->config.limits, spec)) return tl::unexpected(error);
  if (spec.type == verbs::qp_type::kRawPacket && !impl_->config.port.carries_all_frames)
    return tl::unexpected(EOPNOTSUPP);
  auto qp = std::make_unique<Qp>();
  if (const int error = impl_->find_parts(*context, spec, *qp)) return tl::unexpected(error);
  qp->context = context;
  qp->spec = spec;
  auto body = std::make_shared<QpBody>();
  body->service = *service_of(spec.type);
  body->queues =
      impl_->decorate_queues ? impl_->decorate_queues(std::move(queues)) : std::move(queues);
  if (qp->xrcd != nullptr) body->domain = qp->xrcd->domain;

  transport::QpResources resources;
  if (qp->pd != nullptr) resources.pd = qp->pd->id;
  resources.send_queue = &body->queues->send();
  resources.receive_queue = &body->queues->receive();
  if (qp->srq != nullptr) {
    resources.receive_queue = qp->srq;
    resources.srq_pd = qp->srq->pd().id;
  }
  resources.send_cq = qp->send_cq;
  resources.receive_cq = qp->receive_cq;
  resources.receives_are_shared = qp->srq != nullptr || body->domain != nullptr;
  resources.send_only = body->service == Service::xrc_send;
  resources.xrc_domain = body->domain.get();
  resources.addresses = &context->addresses;
  if (qp->srq != nullptr && qp->srq->tags != nullptr) match_tags(*qp, *body, resources);
  const auto qpn = impl_->endpoint->create(body->service, resources);
  if (!qpn) return tl::unexpected(ENOMEM);
  body->qpn = *qpn;
  body->queues->belong_to(*qpn);
  body->queues->show_state(QpState::reset);
  impl_->qps_by_number.emplace(qpn->value, body.get());
  qp->body = std::move(body);
  return CreatedQp{impl_->insert_qp(*context, std::move(qp)), *qpn};
}

// Counts the QP among the users of its parts.
Handle Hca::Impl::insert_qp(Context& context, std::unique_ptr<Qp> qp) {
  if (qp->pd != nullptr) ++qp->pd->users;
  if (qp->send_cq != nullptr) ++qp->send_cq->users;
  if (qp->receive_cq != nullptr) ++qp->receive_cq->users;
  if (qp->srq != nullptr) ++qp->srq->users;
  if (qp->xrcd != nullptr) ++qp->xrcd->users;
  ++totals.qps;
  qp->body->openings.push_back(qp.get());
  return context.qps.insert(std::move(qp));
}

void Hca::Impl::destroy_qp(Qp& qp) {
  QpBody& body = *qp.body;
  std::erase(body.openings, &qp);
  if (body.openings.empty()) {
    const auto attachments =
        static_cast<uint32_t>(endpoint->multicast_groups().attachment_count(body.qpn));
    totals.multicast_attachments -= attachments;
    qp.context->multicast_attachments -= attachments;
    endpoint->destroy(body.qpn);
    qps_by_number.erase(body.qpn.value);
  }
  if (qp.pd != nullptr) --qp.pd->users;
  if (qp.send_cq != nullptr) --qp.send_cq->users;
  if (qp.receive_cq != nullptr) --qp.receive_cq->users;
  if (qp.srq != nullptr) --qp.srq->users;
  if (qp.xrcd != nullptr) --qp.xrcd->users;
  --totals.qps;
}

Result<wire::Qpn> Hca::qp_number(ContextId id, Handle handle) const {
  const Context* context = impl_->find_context(id);
  const Qp* qp = find_object(context, &Context::qps, handle);
  if (qp == nullptr) return tl::unexpected(ENOENT);
  return qp->body->qpn;
}

std::optional<QpDescription> Hca::describe_qp(wire::Qpn qpn) const {
  const auto found = impl_->qps_by_number.find(qpn.value);
  if (found == impl_->qps_by_number.end() || found->second->openings.empty()) return std::nullopt;
  const QpBody& body = *found->second;
  const Qp& qp = *body.openings.front();
  QpDescription description{qp.context->id, qp.pd == nullptr ? 0 : qp.pd->id, body.service,
                            body.attr};
  const AhAttr& ah = body.attr.ah;
  if (ah.is_global && ah.sgid_index < impl_->config.port.gids.size())
    description.local_gid = impl_->config.port.gids[ah.sgid_index].gid;
  return description;
}

Result<transport::Counters> Hca::qp_counters(ContextId id, Handle handle) const {
  const Context* context = impl_->find_context(id);
  const Qp* qp = find_object(context, &Context::qps, handle);
  if (qp == nullptr) return tl::unexpected(ENOENT);
  return impl_->endpoint->counters(qp->body->qpn);
}

transport::WaitFacts Hca::Impl::wait_facts(TimeNs now, const QpBody& body) const {
  transport::WaitFacts facts = endpoint->wait_facts(now, body.qpn);
  if (body.openings.empty()) return facts;
  const Qp& qp = *body.openings.front();
  if (qp.srq != nullptr) {
    facts.receives_posted = qp.srq->waiting();
  } else if (body.queues != nullptr) {
    facts.receives_posted = body.queues->receive().waiting();
  }
  if (qp.send_cq != nullptr) facts.unread_completions = qp.send_cq->unread();
  if (qp.receive_cq != nullptr && qp.receive_cq != qp.send_cq)
    facts.unread_completions += qp.receive_cq->unread();
  return facts;
}

std::vector<QpReport> Hca::report_qps(TimeNs now, size_t most) const {
  std::vector<QpReport> reports;
  for (const auto& [number, body] : impl_->qps_by_number) {
    if (reports.size() == most) break;
    const Context* holder = body->openings.empty() ? nullptr : body->openings.front()->context;
    reports.push_back({.qpn = body->qpn,
                       .service = body->service,
                       .state = impl_->endpoint->state(body->qpn),
                       .remote_qpn = wire::Qpn{body->attr.dest_qp_num},
                       .remote_gid = body->attr.ah.dgid,
                       .program = holder == nullptr ? 0 : holder->memory->pid(),
                       .load = impl_->endpoint->load(body->qpn),
                       .counters = impl_->endpoint->counters(body->qpn),
                       .wait = impl_->wait_facts(now, *body)});
    reports.back().waits_for = transport::find_wait_reason(reports.back().wait);
  }
  std::ranges::sort(reports, {}, [](const QpReport& report) { return report.qpn.value; });
  return reports;
}

namespace {

// The program takes the completions of a QP that is reset or gone out of its CQs, and may find them
// only before it has the answer; the device's turn may come later.
void show_completions(const Qp& qp) {
  for (Cq* const cq : {qp.send_cq, qp.receive_cq})
    if (cq != nullptr) cq->show_early();
}

}  // namespace

Result<EventCounts> Hca::destroy_qp(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Qp* qp = find_object(context, &Context::qps, handle);
  if (qp == nullptr) return tl::unexpected(ENOENT);
  // ibv_destroy_qp(3)
  if (impl_->endpoint->multicast_groups().attachment_count(qp->body->qpn) > 0 || qp->flows > 0)
    return tl::unexpected(EBUSY);
  const EventCounts counts{0, qp->async_events_written};
  show_completions(*qp);
  impl_->destroy_qp(*qp);
  context->qps.erase(handle);
  return counts;
}

// Values that no transition makes right.
int Hca::Impl::check_attributes(const QpAttr& attr, uint32_t mask) const {
  const DeviceLimits& limits = config.limits;
  const bool fits =
      (!(mask & kAccessFlags) ||
       (attr.qp_access_flags & ~(kRemoteAccess | kAccessOfRegionsAlone)) == 0) &&
      (!(mask & kPkeyIndex) || attr.pkey_index == 0) && (!(mask & kPort) || attr.port_num == 1) &&
      (!(mask & kAv) || attr.ah.port_num == 1) &&
      (!(mask & kAltPath) || (attr.alt_ah.port_num == 1 && attr.alt_port_num == 1 &&
                              attr.alt_pkey_index == 0 && attr.alt_timeout < 32)) &&
      (!(mask & kPathMtu) || (attr.path_mtu >= 1 && attr.path_mtu <= verbs::kMtu4096 &&
                              verbs::mtu_bytes(attr.path_mtu) <= config.port.mtu_bytes)) &&
      (!(mask & kTimeout) || attr.timeout < 32) && (!(mask & kRetryCount) || attr.retry_cnt < 8) &&
      (!(mask & kRnrRetry) || attr.rnr_retry < 8) &&
      (!(mask & kMinRnrTimer) || attr.min_rnr_timer < 32) &&
      (!(mask & kMaxQpRdAtomic) || attr.max_rd_atomic <= limits.max_qp_rd_atom) &&
      (!(mask & kMaxDestRdAtomic) || attr.max_dest_rd_atomic <= limits.max_qp_rd_atom) &&
      (!(mask & kRateLimit) || attr.rate_limit <= kMaxRateKbps) &&
      (!(mask & kDestQpn) || attr.dest_qp_num <= 0xffffff);
  return fits ? 0 : EINVAL;
}

// The paths that a change leads to: those that `mask` names are found now.
Result<QpPaths> Hca::Impl::resolve_paths(const QpBody& body, const QpAttr& attr, uint32_t mask) {
  const auto resolve = [&](const AhAttr& ah) {
    return make_path(config.port, ah, body.qpn, wire::Qpn{attr.dest_qp_num}, resolver);
  };
  QpPaths paths = body.paths;
  if ((mask & kAv) != 0) {
    const auto path = resolve(attr.ah);
    if (!path) return tl::unexpected(path.error());
    paths.path = *path;
  }
  if ((mask & kAltPath) != 0) {
    const auto path = resolve(attr.alt_ah);
    if (!path) return tl::unexpected(path.error());
    paths.alternate = std::make_shared<const transport::AlternatePath>(
        transport::AlternatePath{*path, attr.alt_timeout});
  }
  return paths;
}

transport::QpAttributes Hca::Impl::transport_attributes(const QpBody& body, const QpAttr& attr,
                                                        const QpPaths& paths) const {
  transport::QpAttributes result;
  result.path = paths.path;
  result.alternate = paths.alternate;
  if (body.service == Service::raw_packet) {
    result.path_mtu_bytes =
        transport::kMaxPlainFrameBytes;  // a request is one frame, or says itself
  } else if (body.service == Service::ud) {
    result.path_mtu_bytes = config.port.mtu_bytes;
  } else if (attr.path_mtu != 0) {
    result.path_mtu_bytes = verbs::mtu_bytes(attr.path_mtu);
  }
  result.qkey = attr.qkey;
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
  Qp* qp = find_object(context, &Context::qps, handle);
  if (qp == nullptr) return tl::unexpected(ENOENT);
  QpBody& body = *qp->body;
  mask &= ~ignored_attributes(body.service);
  const QpState from = impl_->endpoint->state(body.qpn);
  if ((mask & kCurState) != 0 && attr.cur_qp_state != static_cast<uint32_t>(from))
    return tl::unexpected(EINVAL);
  if ((mask & kState) != 0 && attr.qp_state > static_cast<uint32_t>(QpState::error))
    return tl::unexpected(EINVAL);
  const QpState to = (mask & kState) != 0 ? static_cast<QpState>(attr.qp_state) : from;
  if (const int error = check_transition(body.service, from, to, mask))
    return tl::unexpected(error);
  if (const int error = impl_->check_attributes(attr, mask)) return tl::unexpected(error);
  if (const int error = impl_->check_migration(body, attr, mask, to)) return tl::unexpected(error);

  QpAttr merged = to == QpState::reset ? QpAttr{} : body.attr;
  merge(merged, attr, mask);
  const auto paths = to == QpState::reset ? QpPaths{} : impl_->resolve_paths(body, merged, mask);
  if (!paths) return tl::unexpected(paths.error());
  transport::QpAttributes attributes = impl_->transport_attributes(body, merged, *paths);
  attributes.migration = migration_asked_for(attr, mask);

  body.attr = merged;
  body.paths = *paths;
  // ERROR is shown before the queues are flushed, so that a receive posted meanwhile rings.
  body.queues->show_state(to);
  impl_->endpoint->modify(body.qpn, to, attributes);
  if (to == QpState::reset) show_completions(*qp);
  if (to == QpState::reset) body.queues->reset();
  if (to == QpState::reset && body.tags != nullptr) body.tags->reset();
  if (to == QpState::reset || (mask & kRateLimit) != 0)
    impl_->endpoint->limit_rate(body.qpn, {merged.rate_limit});
  return to;
}

int Hca::limit_qp_rate(ContextId id, Handle handle, const transport::RateLimit& limit) {
  Context* context = impl_->find_context(id);
  Qp* qp = find_object(context, &Context::qps, handle);
  if (qp == nullptr) return ENOENT;
  if (!sends(qp->body->service) || limit.rate_kbps > kMaxRateKbps) return EINVAL;
  const QpState state = impl_->endpoint->state(qp->body->qpn);
  if (state == QpState::reset || state == QpState::error) return EINVAL;
  qp->body->attr.rate_limit = limit.rate_kbps;
  impl_->endpoint->limit_rate(qp->body->qpn, limit);
  return 0;
}

Result<QpAttr> Hca::query_qp(ContextId id, Handle handle) const {
  Context* context = impl_->find_context(id);
  const Qp* qp = find_object(context, &Context::qps, handle);
  if (qp == nullptr) return tl::unexpected(ENOENT);
  const QpBody& body = *qp->body;
  QpAttr attr = body.attr;
  attr.qp_state = static_cast<uint32_t>(impl_->endpoint->state(body.qpn));
  attr.cur_qp_state = attr.qp_state;
  attr.path_mig_state = static_cast<uint32_t>(impl_->endpoint->migration_state(body.qpn));
  attr.sq_draining = impl_->endpoint->draining(body.qpn);
  return attr;
}

}  // namespace rocemu::device
