#include "emulator/daemon/engine/engine_context.h"

#include <cerrno>
#include <utility>

namespace rocemu::daemon {

EngineContext::EngineContext(device::Hca& hca, device::ContextId id,
                             std::unique_ptr<Doorbells> doorbells, std::unique_ptr<WakeFd> wake)
    : hca_(hca), id_(id), doorbells_(std::move(doorbells)), wake_(std::move(wake)) {}

EngineContext::~EngineContext() { hca_.close_context(id_); }

device::Result<CreatedQueuePair> EngineContext::create_qp(
    const device::QpSpec& spec, std::unique_ptr<device::WorkQueues> queues) {
  const device::Result<device::CreatedQp> qp = hca_.create_qp(id_, spec, std::move(queues));
  if (!qp) return tl::unexpected(qp.error());
  const std::optional<uint32_t> slot = doorbells_->allocate(qp->qpn);
  if (!slot) {
    static_cast<void>(hca_.destroy_qp(id_, qp->qp));  // nothing can refer to it yet
    return tl::unexpected(ENOMEM);
  }
  slots_.emplace(qp->qp, *slot);
  return CreatedQueuePair{*qp, *slot};
}

device::Result<device::EventCounts> EngineContext::destroy_qp(device::Handle qp) {
  device::Result<device::EventCounts> counts = hca_.destroy_qp(id_, qp);
  if (!counts) return counts;
  if (const auto slot = slots_.find(qp); slot != slots_.end()) {
    doorbells_->release(slot->second);
    slots_.erase(slot);
  }
  return counts;
}

}  // namespace rocemu::daemon
