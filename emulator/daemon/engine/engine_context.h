// EngineContext is one opened device of one program, as the engine has it: its objects in the HCA,
// and the doorbells that belong to its QPs. Only the engine thread uses it; destroying it closes
// the context.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "emulator/daemon/engine/wake_set.h"
#include "emulator/daemon/rings/doorbells.h"
#include "emulator/device/hca.h"

namespace rocemu::daemon {

struct CreatedQueuePair {
  device::CreatedQp qp;
  uint32_t doorbell = 0;
};

class EngineContext {
 public:
  // `wake` is the eventfd that this program, and no other, wakes the engine with.
  EngineContext(device::Hca& hca, device::ContextId id, std::unique_ptr<Doorbells> doorbells,
                std::unique_ptr<WakeFd> wake);
  ~EngineContext();
  EngineContext(const EngineContext&) = delete;
  EngineContext& operator=(const EngineContext&) = delete;

  device::Hca& hca() const { return hca_; }
  device::ContextId id() const { return id_; }
  Doorbells& doorbells() const { return *doorbells_; }
  int wake_fd() const { return wake_->get(); }

  // These do what Hca does, and a doorbell comes and goes with the QP. ENOMEM when no slot is left.
  device::Result<CreatedQueuePair> create_qp(const device::QpSpec& spec,
                                             std::unique_ptr<device::WorkQueues> queues);
  // A QP that is opened (XRC_RECV) has no doorbell: nothing can be posted to it.
  device::Result<device::CreatedQp> open_qp(device::Handle xrcd, wire::Qpn qpn,
                                            uint64_t user_pointer) {
    return hca_.open_qp(id_, xrcd, qpn, user_pointer);
  }
  device::Result<device::EventCounts> destroy_qp(device::Handle qp);

 private:
  device::Hca& hca_;
  device::ContextId id_;
  std::unique_ptr<Doorbells> doorbells_;
  std::unique_ptr<WakeFd> wake_;
  std::unordered_map<device::Handle, uint32_t> slots_;  // by QP
};

}  // namespace rocemu::daemon
