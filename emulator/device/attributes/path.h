// The way from an address handle's attributes to the frames' headers.
#pragma once

#include "emulator/device/attributes/device_config.h"
#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/device/interface/host_interface.h"
#include "emulator/device/interface/specs.h"

namespace rocemu::device {

// The way to `remote_qpn` that `ah` describes. EINVAL: not a global address of this port, or one of
// another IP version than the source; EHOSTUNREACH: nobody has it.
Result<transport::Path> make_path(const PortConfig& port, const AhAttr& ah, wire::Qpn local_qpn,
                                  wire::Qpn remote_qpn, AddressResolver& resolver);

using rocemu::is_multicast;

// True when `ah` has a source and a destination that go together on this port.
bool names_a_path(const PortConfig& port, const AhAttr& ah);

// The UDP source port of a connection: flow entropy that is the same for all its packets, and the
// same that Linux takes (rdma_get_udp_sport).
uint16_t udp_source_port(uint32_t flow_label, wire::Qpn local, wire::Qpn remote);

}  // namespace rocemu::device
