#include "emulator/daemon/attachment/port_description.h"

#include <algorithm>
#include <array>

#include "base/byte_order.h"

namespace rocemu::daemon {
namespace {

using device::GidEntry;

constexpr unsigned kMinPathMtu = 256;
constexpr unsigned kMaxPathMtu = 4096;
constexpr uint8_t kLinkLocalBits = 64;

// Keeps what is still wanted where it is, and puts what is new into the places that are free.
// An address that is there twice has its first network.
void update_table(std::vector<GidEntry>& table, std::span<const GidEntry> wanted) {
  for (GidEntry& entry : table) {
    const auto still = std::ranges::find(wanted, entry.gid, &GidEntry::gid);
    entry = still != wanted.end() ? *still : GidEntry{};
  }
  for (const GidEntry& entry : wanted) {
    if (std::ranges::find(table, entry.gid, &GidEntry::gid) != table.end()) continue;
    const auto free = std::ranges::find(table, wire::Gid{}, &GidEntry::gid);
    if (free != table.end()) {
      *free = entry;
    } else if (table.size() < kGidTableLength) {
      table.push_back(entry);
    }
  }
}

GidEntry entry_of(const dpdk_io::LinkAddress& own) {
  const unsigned mapped_bits = own.address.is_ipv4() ? kIpv4MappedBits : 0;
  return {wire::Gid{own.address}, static_cast<uint8_t>(mapped_bits + own.prefix_bits)};
}

// The loopback interface lists only one of its addresses, in whose network the others are.
GidEntry entry_of(const UdpAddress& local) {
  if (!local.interface) return {};
  for (const dpdk_io::LinkAddress& own : local.interface->addresses)
    if (own.address == local.address ||
        (local.address.is_loopback_ipv4() && own.address.is_loopback_ipv4()))
      return entry_of({local.address, own.prefix_bits});
  return {wire::Gid{local.address}};
}

}  // namespace

uint32_t path_mtu_bytes(unsigned interface_mtu_bytes, unsigned trailer_bytes) {
  const unsigned beside_bytes = std::max(kMaxHeaderBytes, kMaxPayloadHeaderBytes + trailer_bytes);
  uint32_t mtu = kMaxPathMtu;
  while (mtu > kMinPathMtu && mtu + beside_bytes > interface_mtu_bytes) mtu /= 2;
  return mtu;
}

device::PortConfig describe_interface_port(const device::PortConfig& before,
                                           const std::optional<dpdk_io::KernelInterface>& now) {
  device::PortConfig port = before;
  port.active = now && now->running;
  if (!now) return port;
  port.mac = now->mac;
  port.netdev_name = now->name;
  port.interface_index = now->index;
  port.mtu_bytes = path_mtu_bytes(now->mtu_bytes, port.trailer_bytes);
  std::vector<GidEntry> wanted = {{wire::Gid{link_local_address(now->mac)}, kLinkLocalBits}};
  for (const dpdk_io::LinkAddress& own : now->addresses) wanted.push_back(entry_of(own));
  if (port.gids.empty()) port.gids.push_back(wanted.front());
  port.gids[0] = wanted.front();
  update_table(port.gids, wanted);
  return port;
}

device::PortConfig describe_udp_port(const device::PortConfig& before,
                                     std::span<const UdpAddress> addresses) {
  device::PortConfig port = before;
  port.carries_all_frames = false;
  port.trailer_bytes = 0;  // a socket sends nothing behind its datagram
  port.mac = mac_standing_for(addresses.front().address);
  port.udp_source_port = wire::kRoceUdpPort;
  port.active = false;
  port.gids.clear();
  uint32_t mtu_bytes = kMaxPathMtu;
  for (const UdpAddress& local : addresses) {
    port.gids.push_back(entry_of(local));
    if (!local.interface) continue;
    if (!port.active) port.netdev_name = local.interface->name;
    port.active = port.active || local.interface->running;
    mtu_bytes = std::min(mtu_bytes, path_mtu_bytes(local.interface->mtu_bytes));
  }
  if (port.active) port.mtu_bytes = mtu_bytes;
  return port;
}

device::PortConfig describe_ethdev_port(const device::PortConfig& before, const MacAddress& mac,
                                        unsigned mtu_bytes, const dpdk_io::IpSettings& ip,
                                        bool link_is_up) {
  device::PortConfig port = before;
  port.active = link_is_up;
  port.mac = mac;
  port.mtu_bytes = path_mtu_bytes(mtu_bytes, port.trailer_bytes);
  port.gids = {{wire::Gid{link_local_address(mac)}, kLinkLocalBits}};
  for (const dpdk_io::LinkAddress& own : ip.addresses) port.gids.push_back(entry_of(own));
  return port;
}

dpdk_io::IpSettings default_network(const device::PortConfig& port) {
  constexpr uint8_t kIpv4Prefix = 24;
  constexpr uint8_t kIpv6Prefix = 64;
  dpdk_io::IpSettings ip;
  for (const GidEntry& entry : port.gids) {
    const IpAddress address = entry.gid;
    if (address.is_link_local_ipv6()) continue;
    ip.addresses.push_back({address, address.is_ipv4() ? kIpv4Prefix : kIpv6Prefix});
  }
  return ip;
}

MacAddress mac_standing_for(const IpAddress& address) {
  constexpr uint8_t kLocallyAdministered = 0x02;
  const auto& b = address.bytes;
  std::array<uint8_t, 4> last = {b[12], b[13], b[14], b[15]};
  // Hosts of two networks have the same last bytes there, often: all bytes have a say (FNV-1a).
  if (!address.is_ipv4()) {
    uint32_t hash = 0x811c9dc5;
    for (const uint8_t byte : b) hash = (hash ^ byte) * 0x01000193;
    store_be32(last.data(), hash);
  }
  return {kLocallyAdministered, 0x52, last[0], last[1], last[2], last[3]};
}

MacAddress mac_standing_for_peer(const device::PortConfig& port, const IpAddress& peer) {
  MacAddress mac = mac_standing_for(peer);
  if (mac == port.mac) mac[1] ^= 1;
  return mac;
}

}  // namespace rocemu::daemon
