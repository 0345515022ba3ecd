// Removes ids whose device is lost, as Linux's cma_process_remove() and ucma_close_id() do.
#include <vector>

#include "emulator/cm/rdma_cm.h"

namespace rocemu::cm {

void RdmaCm::remove_device(TimeNs now, uint32_t device) {
  interfaces_.set_lost(device, true);
  std::vector<IdHandle> tied;
  for (const auto& [handle, id] : ids_.all())
    if (id.local_gid && id.local_gid->device == device && id.state != IdState::removed)
      tied.push_back(handle);
  for (const IdHandle handle : tied) remove_device_of(now, ids_.at(handle));
  deliver(now);
}

// What waits for the program stays: it hears of it, and of the removal behind it. A new connection
// that nobody has accepted yet hears nothing: its acceptance fails.
void RdmaCm::remove_device_of(TimeNs now, RdmaId& id) {
  drop_connection(now, id);
  if (id.state == IdState::listening) stop_listening(id);
  if (id.port_bound) ports_of(id).release(id.handle, id.source->port);
  id.port_bound = false;
  id.state = IdState::removed;
  if (id.uid != 0) queue_about(id, EventType::device_removal, 0, ConnectionParameters{});
}

}  // namespace rocemu::cm
