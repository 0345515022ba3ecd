// Text by which reports name the other end of a connection.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "verbs_shim/abi/inspect.h"

namespace rocemu::check {

std::string peer_text(uint32_t qpn, uint32_t device);         // "QP 0x000012 of rocemu1"
std::string peer_text(const rocemu_inspect_qp_reply& facts);  // the same
std::string gid_text(const uint8_t (&gid)[16]);               // an IP address
bool is_link_local(const uint8_t (&gid)[16]);
bool is_ipv4(const uint8_t (&gid)[16]);
bool is_zero(const uint8_t (&gid)[16]);
uint32_t mtu_bytes(uint32_t mtu);         // bytes of an enum ibv_mtu
std::string time_text(uint64_t time_ns);  // "1.28 ms"

}  // namespace rocemu::check
