// The transport's knowledge of the network layer under it: how the addresses of a packet compare
// with those that a QP expects, and how a datagram's network header is shown to its program. With
// another network layer this file and wire/ change, the services do not.
#pragma once

#include <cstdint>

#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

// The room before a datagram's payload in its receive (IBTA vol 1, 11.4.1.2).
inline constexpr uint32_t kGrhBytes = 40;

// True when `packet` comes from the peer of `path` and goes to this end of it.
inline bool is_from_peer(const wire::Packet& packet, const Path& path) {
  return packet.ip.source == path.remote_gid && packet.ip.destination == path.local_gid;
}

// True when a datagram is for this port. A multicast one has been matched with its group before.
inline bool is_to_port(const wire::Packet& packet, const Addresses& addresses) {
  return packet.bth.destination_qp == wire::kMulticastQpn ||
         addresses.is_local(packet.ip.destination);
}

// The headers of an answer to whoever has sent `packet`, along the way that it came. A frame
// without an Ethernet source came through a socket, whose own port the answer leaves from.
wire::HeaderTemplate headers_of_answer(const wire::Packet& packet, uint8_t traffic_class);

// Writes the network header of `packet` to the first kGrhBytes of `receive`. False: a key does not
// allow it.
bool scatter_grh(const QpContext& context, const ReceiveWork& receive, const wire::Packet& packet);

// The completion's service level, which tells what kind of network header the GRH area holds.
uint8_t grh_service_level(const wire::Packet& packet);

}  // namespace rocemu::transport
