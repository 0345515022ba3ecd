// A socket that takes a UDP port on one interface and throws away all that comes.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace rocemu::dpdk_io {

// For IPv4 and IPv6. Throws std::runtime_error with a message that says what to do.
UniqueFd guard_udp_port(const std::string& interface, uint16_t udp_port);

}  // namespace rocemu::dpdk_io
