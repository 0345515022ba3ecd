// The header that the RDMA IP CM service puts before the private data of a REQ or SIDR REQ, and the
// service's ids (IBTA annex A11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/wire/types.h"

namespace rocemu::wire {

inline constexpr size_t kCmaHeaderBytes = 36;

// Addresses as GIDs: an IPv4 address as ::ffff:a.b.c.d.
struct CmaHeader {
  bool ipv6 = false;
  uint16_t source_port = 0;
  Gid source{};
  Gid destination{};
};

// False when the header is of another version, or neither IPv4 nor IPv6. Precondition: `bytes`
// holds kCmaHeaderBytes.
bool parse_cma_header(std::span<const std::byte> bytes, CmaHeader& header);
void build_cma_header(const CmaHeader& header, std::span<std::byte> bytes);

// `port_space` as enum rdma_port_space has it: its low 16 bits stand in the service id.
constexpr uint64_t ip_cm_service_id(uint16_t port_space, uint16_t port) {
  return uint64_t{port_space} << 16 | port;
}

}  // namespace rocemu::wire
