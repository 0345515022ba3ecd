#include "emulator/cm/interfaces.h"

#include <algorithm>
#include <utility>

namespace rocemu::cm {
namespace {

// An IPv6 prefix may be so short that it has all of IPv4, which is another network.
bool in_network_of(const Address& own, const wire::Gid& ip) {
  return same_family(own.gid, ip) && bits_equal(own.gid, ip, own.network_bits);
}

// Nothing routes link-local addresses, neither to nor from them.
bool may_have_gateway_to(const Address& own, const wire::Gid& ip) {
  return same_family(own.gid, ip) && !own.gid.is_link_local_ipv6() && !ip.is_link_local_ipv6();
}

// Ranks how good it is to speak to `ip` from the address `own`; 0 means not at all.
unsigned rank_of(const Interface& device, const Address& own, const wire::Gid& ip) {
  constexpr unsigned kGateway = 1;
  constexpr unsigned kNetwork = 2;  // and the bits of its prefix
  constexpr unsigned kItself = kNetwork + 128 + 1;
  // Devices of a switch reach each other, while nothing leads from one interface of the machine to
  // another.
  if (device.open && own.gid == ip) return kItself;
  if (in_network_of(own, ip)) return kNetwork + own.network_bits;
  return device.open && may_have_gateway_to(own, ip) ? kGateway : 0;
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
  interface.addresses.resize(
      std::max(interface.addresses.size(), devices_[device].addresses.size()));
  devices_[device] = std::move(interface);
}

template <class Rank>
std::optional<LocalGid> Interfaces::best(Rank rank) const {
  std::optional<LocalGid> chosen;
  unsigned highest = 0;
  for (uint32_t device = 0; device < devices_.size(); ++device) {
    const auto& addresses = devices_[device].addresses;
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (addresses[i].gid == wire::Gid{}) continue;
      const unsigned its = rank(device, addresses[i]);
      if (its <= highest) continue;
      highest = its;
      chosen = LocalGid{device, static_cast<uint8_t>(i)};
    }
  }
  return chosen;
}

std::optional<LocalGid> Interfaces::find(const wire::Gid& ip,
                                         std::optional<uint32_t> wanted) const {
  return best([&](uint32_t device, const Address& own) {
    return own.gid == ip && device == wanted.value_or(device) ? 1u : 0u;
  });
}

std::optional<LocalGid> Interfaces::find(const SocketAddress& address) const {
  return find(address.ip, device_of(address));
}

bool SocketAddress::is_multicast() const {
  return ipv6 ? ip.bytes[0] == 0xff : (ip.bytes[12] & 0xf0) == 0xe0;
}

bool Interfaces::known(const wire::Gid& ip, uint32_t device) const {
  return devices_[device].open || find(ip) ||
         std::find(neighbours_.begin(), neighbours_.end(), ip) != neighbours_.end();
}

std::optional<uint32_t> Interfaces::device_of(const SocketAddress& address) const {
  const uint32_t scope_id = address.scope_id;
  if (scope_id == 0 || !address.ip.is_link_local_ipv6()) return std::nullopt;
  for (uint32_t device = 0; device < devices_.size(); ++device)
    if (devices_[device].scope_id == scope_id) return device;
  return std::nullopt;
}

std::optional<LocalGid> Interfaces::source_for(const SocketAddress& destination,
                                               std::optional<uint32_t> wanted) const {
  if (!wanted) wanted = device_of(destination);
  return best([&](uint32_t device, const Address& own) {
    if (wanted && *wanted != device) return 0u;
    return rank_of(devices_[device], own, destination.ip);
  });
}

std::optional<LocalGid> Interfaces::first(bool ipv6) const {
  return best([&](uint32_t, const Address& own) {
    return own.gid.is_ipv4_mapped() != ipv6 && !own.gid.is_link_local_ipv6() ? 1u : 0u;
  });
}

}  // namespace rocemu::cm
