#include "emulator/cm/interfaces.h"

#include <algorithm>
#include <utility>

namespace rocemu::cm {
namespace {

bool is_link_local(const wire::Gid& gid) {
  return gid.bytes[0] == 0xfe && (gid.bytes[1] & 0xc0) == 0x80;
}

// Two addresses of one network: /64 for IPv6, 10.77.0.0/16 for IPv4.
bool same_network(const wire::Gid& a, const wire::Gid& b) {
  const size_t prefix_bytes = a.is_ipv4_mapped() ? 14 : 8;
  return std::equal(a.bytes.begin(), a.bytes.begin() + prefix_bytes, b.bytes.begin());
}

}  // namespace

bool SocketAddress::is_any() const {
  const auto zero = [](auto from, auto to) {
    return std::all_of(from, to, [](uint8_t byte) { return byte == 0; });
  };
  if (!ipv6) return ip.bytes[12] == 127 || zero(ip.bytes.begin() + 12, ip.bytes.end());
  return ip.bytes[15] <= 1 && zero(ip.bytes.begin(), ip.bytes.end() - 1);
}

void Interfaces::update(uint32_t device, Interface interface) {
  interface.gids.resize(std::max(interface.gids.size(), devices_[device].gids.size()));
  devices_[device] = std::move(interface);
}

std::optional<Place> Interfaces::find(const wire::Gid& ip) const {
  if (ip == wire::Gid{}) return std::nullopt;
  for (uint32_t device = 0; device < devices_.size(); ++device) {
    const auto& gids = devices_[device].gids;
    const auto found = std::find(gids.begin(), gids.end(), ip);
    if (found != gids.end()) return Place{device, static_cast<uint8_t>(found - gids.begin())};
  }
  return std::nullopt;
}

bool SocketAddress::is_multicast() const {
  return ipv6 ? ip.bytes[0] == 0xff : (ip.bytes[12] & 0xf0) == 0xe0;
}

bool Interfaces::known(const wire::Gid& ip) const {
  if (find(ip) || std::find(neighbours_.begin(), neighbours_.end(), ip) != neighbours_.end())
    return true;
  return std::any_of(devices_.begin(), devices_.end(), [&](const Interface& device) {
    return device.open && std::any_of(device.gids.begin(), device.gids.end(),
                                      [&](const wire::Gid& gid) { return same_network(gid, ip); });
  });
}

std::optional<Place> Interfaces::source_for(const wire::Gid& destination,
                                            std::optional<uint32_t> wanted) const {
  for (uint32_t device = 0; device < devices_.size(); ++device) {
    if (wanted && *wanted != device) continue;
    const auto& gids = devices_[device].gids;
    for (size_t i = 0; i < gids.size(); ++i)
      if (same_network(gids[i], destination)) return Place{device, static_cast<uint8_t>(i)};
  }
  return std::nullopt;
}

std::optional<Place> Interfaces::first(bool ipv6) const {
  for (uint32_t device = 0; device < devices_.size(); ++device) {
    const auto& gids = devices_[device].gids;
    for (size_t i = 0; i < gids.size(); ++i)
      if (gids[i].is_ipv4_mapped() != ipv6 && !is_link_local(gids[i]))
        return Place{device, static_cast<uint8_t>(i)};
  }
  return std::nullopt;
}

}  // namespace rocemu::cm
