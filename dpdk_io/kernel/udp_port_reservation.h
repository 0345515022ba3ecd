// Reserves a UDP port of one interface: a socket is bound to it, and throws away all that comes, so
// that the kernel does not answer with ICMP "port unreachable".
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace rocemu::dpdk_io {

// Reserves it for IPv4 and IPv6, until the socket is closed. Throws std::runtime_error with a
// message that says what to do.
UniqueFd reserve_udp_port(const std::string& interface, uint16_t udp_port);

}  // namespace rocemu::dpdk_io
