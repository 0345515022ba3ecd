// The line between a NIC's port on an interface and the kernel, as socket filters (bpf(4)): whole
// datagrams to one UDP port are the NIC's, all else is the kernel's.
#pragma once

#include <cstdint>

namespace rocemu::dpdk_io {

enum class Passed : uint8_t {
  // To the UDP port: no fragment, no IPv4 options, no IPv6 extension header, no VLAN tag.
  datagrams,
  others,
  nothing,
};

// Lets a packet socket have no others of what came in for this machine. False with errno.
bool attach_port_filter(int packet_socket, uint16_t udp_port, Passed passed) noexcept;

}  // namespace rocemu::dpdk_io
