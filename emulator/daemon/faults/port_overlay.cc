#include "emulator/daemon/faults/port_overlay.h"

namespace rocemu::daemon {

// A GID that goes leaves an empty place: the indices of the others stay.
device::PortConfig with_faults(const ArmedFaults& faults, uint32_t device,
                               device::PortConfig port) {
  faults.for_each_active(device, [&](const fault::Spec& spec) {
    const fault::What& what = spec.what;
    const bool has_index = what.gid_index < port.gids.size();
    switch (what.kind) {
      case fault::Kind::port_down:
      case fault::Kind::device_fatal:
        port.active = false;
        break;
      case fault::Kind::gid_removed:
        if (has_index) port.gids[what.gid_index] = {};
        break;
      case fault::Kind::gid_changed:
        if (has_index) port.gids[what.gid_index].gid = wire::Gid{what.gid};
        break;
      default:
        break;
    }
  });
  return port;
}

}  // namespace rocemu::daemon
