// The device's configuration: what it says of itself and what it lets a program have. Numbers have
// verbs' meaning; create calls check the limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/wire/types.h"

namespace rocemu::device {

// Each QP and CQ takes a mapping in the program and in the NIC; the kernel allows 65530 a process
// (vm.max_map_count), which is why their defaults are not larger. They are not smaller, so that a
// program that has all of its share of mappings, three quarters, leaves others some.
struct DeviceLimits {
  uint32_t max_qp = 65536;
  uint32_t max_qp_wr = 32768;
  uint32_t max_sge = 32;
  uint32_t max_cq = 65536;
  uint32_t max_cqe = 4194304;
  uint32_t max_mr = 1048576;
  uint32_t max_mw = 1048576;
  uint32_t max_pd = 65536;
  uint32_t max_contexts = 1024;
  uint32_t max_channels = 65536;
  uint32_t max_ah = 65536;
  uint32_t max_srq = 65536;
  uint32_t max_srq_wr = 32768;
  uint32_t max_srq_sge = 32;
  uint32_t max_srq_tags = 256;  // each message is held against all of an SRQ's
  uint32_t max_xrcd = 4096;
  uint32_t max_mcast_grp = 4096;
  uint32_t max_mcast_qp_attach = 256;          // QPs in one group
  uint32_t max_total_mcast_qp_attach = 65536;  // in all groups
  uint32_t max_qp_rd_atom = 128;
  uint32_t max_inline_data = 1024;
  uint64_t max_mr_size = 1ull << 47;
  uint64_t max_dm_size = 4 << 20;  // device memory of all programs together
  uint32_t max_msg_size = 1u << 30;
  uint32_t num_comp_vectors = 4;
  bool grants_exactly = false;  // queues are as long as was asked for, and not what is handy
};

// An empty place in the table has GID zero: indices of others stay when a GID goes.
struct GidEntry {
  wire::Gid gid;
  // Its first bits, which all addresses of its network have: 96 more than an IPv4 prefix. 128: it
  // is not known which network it is in.
  uint8_t network_bits = 128;
  bool operator==(const GidEntry&) const = default;
};

struct PortConfig {
  MacAddress mac{};
  std::string netdev_name;  // sysfs's name of the interface behind the port
  uint32_t mtu_bytes = 4096;
  std::vector<GidEntry> gids;
  bool active = true;
  // The kernel's number of that interface, which is the scope of link-local addresses on it; 0: the
  // port has none.
  uint32_t interface_index = 0;
  // The UDP source port of every frame, where the way out has only one; 0: it tells connections
  // apart.
  uint16_t udp_source_port = 0;
  // What packets may bear behind their payload, so that a link's MTU has to have room for it: a
  // record of the path's telemetry (transport/qp/telemetry_exchange.h). 0: nothing.
  uint32_t trailer_bytes = 0;
  // The port carries frames of any kind, so that raw packet QPs can use it.
  bool carries_all_frames = true;

  bool operator==(const PortConfig&) const = default;
};

struct HcaConfig {
  std::string name;  // rocemu0
  uint32_t index = 0;
  uint64_t node_guid = 0;  // host order
  DeviceLimits limits;
  PortConfig port;
};

// The bounds of ibv_modify_qp_rate_limit(3).
inline constexpr uint32_t kMinRateKbps = 1;
inline constexpr uint32_t kMaxRateKbps = 100'000'000;

// Fixed identity, documented in docs/architecture.md.
inline constexpr uint32_t kVendorId = 0xca3e;  // in no registry: "rocemu" has no OUI
inline constexpr uint32_t kVendorPartId = 0x0001;

// The numbers of the devices' nodes: Documentation/admin-guide/devices.txt of Linux.
inline constexpr unsigned kUverbsMajor = 231;
inline constexpr unsigned kUverbsFirstMinor = 192;

// The modified EUI-64 of a MAC (RFC 4291, appendix A), in host order.
uint64_t guid_from_mac(const MacAddress& mac);

// The default device N: MAC 02:52:4f:43:00:(N+1), 10.77.0.(N+1), link-local and ULA IPv6 addresses.
HcaConfig default_config(uint32_t index);

}  // namespace rocemu::device
