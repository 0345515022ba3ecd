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

void TraceAccess::tell_polled() {
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([](Cq& cq) { cq.tell_polled(); });
}

void TraceAccess::unwatch() {
  for (const auto& entry : impl_.qps_by_number)
    if (entry.second->queues != nullptr) entry.second->queues->stamp_posts(false);
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([](Cq& cq) { cq.unwatch_polls(); });
}

}  // namespace rocemu::device
