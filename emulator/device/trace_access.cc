#include "emulator/device/trace_access.h"

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

void TraceAccess::watch(wire::Qpn qpn, PollWatch& watch) {
  const auto found = impl_.qps_by_number.find(qpn.value);
  if (found == impl_.qps_by_number.end()) return;
  if (found->second->queues != nullptr) found->second->queues->stamp_posts(true);
  for (const Qp* qp : found->second->openings)
    for (Cq* cq : {qp->send_cq, qp->receive_cq})
      if (cq != nullptr) cq->watch_polls(watch);
}

QueueHandles TraceAccess::queues_of(wire::Qpn qpn) const {
  const auto found = impl_.qps_by_number.find(qpn.value);
  if (found == impl_.qps_by_number.end() || found->second->openings.empty()) return {};
  const Qp& qp = *found->second->openings.front();
  QueueHandles handles;
  if (qp.send_cq != nullptr) handles.send_cq = qp.spec.send_cq;
  if (qp.receive_cq != nullptr) handles.receive_cq = qp.spec.receive_cq;
  if (qp.srq == nullptr) return handles;
  handles.srq = qp.spec.srq;
  // One that matches tags has a CQ of its own for what is received.
  if (qp.srq->spec().tag_matching) handles.receive_cq = qp.srq->spec().cq;
  return handles;
}

void TraceAccess::tell_polled() {
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([](Cq& cq) { cq.tell_polled(); });
}

KeyFault TraceAccess::explain_key(wire::Qpn qpn, uint32_t key, uint64_t address,
                                  uint32_t length_bytes) const {
  const auto found = impl_.qps_by_number.find(qpn.value);
  if (found == impl_.qps_by_number.end() || found->second->openings.empty()) return KeyFault::none;
  const Qp& qp = *found->second->openings.front();
  const MemoryRegion* const entry = impl_.regions.find_entry(key);
  if (entry == nullptr) return KeyFault::never_given;
  if (entry->key != key || (entry->space == nullptr && entry->window == WindowType::none))
    return entry->generation > 0 ? KeyFault::gone : KeyFault::never_given;
  if (qp.pd != nullptr && entry->pd != qp.pd->id) return KeyFault::other_domain;
  if (entry->space == nullptr) return KeyFault::not_granted;
  const uint64_t offset = address - entry->iova;
  const bool is_within =
      offset <= entry->length_bytes && length_bytes <= entry->length_bytes - offset;
  return is_within ? KeyFault::not_granted : KeyFault::out_of_range;
}

void TraceAccess::unwatch() {
  for (const auto& entry : impl_.qps_by_number)
    if (entry.second->queues != nullptr) entry.second->queues->stamp_posts(false);
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([](Cq& cq) { cq.unwatch_polls(); });
}

}  // namespace rocemu::device
