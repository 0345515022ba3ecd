#include "emulator/daemon/control_plane.h"

#include <cstddef>

#include "emulator/daemon/cm_service/cm_conversation.h"
#include "emulator/daemon/faults/fault_injector.h"
#include "emulator/daemon/shaking/nic_shaking.h"
#include "emulator/daemon/tracing/nic_tracing.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kControlConnections = 64;  // on top of as many as there can be contexts

}  // namespace

ControlPlane::ControlPlane(boost::asio::io_context& io, const Nic& nic, const Options& options,
                           inspection::Inspection* inspection)
    : io_(io),
      executor_(io, nic.engine),
      administration_(nic),
      sessions_{.devices = nic.devices,
                .engine = executor_,
                .administration = administration_,
                .dma = nic.dma,
                .shares = &shares_,
                .inspection = inspection,
                .decorator = nic.shaking,
                .gate = nic.faults} {
  for (const device::HcaConfig& device : nic.devices) {
    PathFinder* const path_finder = nic.path_finders[device.index];
    networks_.push_back(path_finder == nullptr ? nullptr
                                               : std::make_unique<AttachedNetwork>(
                                                     *path_finder, nic.groups_of(device.index)));
    sessions_.networks.push_back(networks_.back().get());
  }
  if (nic.tracing != nullptr)
    sessions_.on_context_end = [&tracing = *nic.tracing](uint32_t device, pid_t program) {
      tracing.on_context_end(device, program);
    };
  sessions_.new_cm_program = [&cm = *nic.cm](pid_t program) {
    return std::make_unique<CmConversation>(cm, program);
  };
  const size_t max_sessions =
      size_t{options.limits.max_contexts} * options.devices + kControlConnections;
  listener_ = std::make_unique<Listener>(io, sessions_, &mailbox_poller_,
                                         options.dir / ROCEMU_SOCKET_NAME, max_sessions);
}

void ControlPlane::run() {
  mailbox_poller_.run(io_);
  listener_->close();
}

}  // namespace rocemu::daemon
