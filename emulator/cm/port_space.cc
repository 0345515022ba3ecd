#include "emulator/cm/port_space.h"

#include <cerrno>

namespace rocemu::cm {
namespace {

// net.ipv4.ip_local_port_range
constexpr uint16_t kFirstEphemeral = 32768;
constexpr uint16_t kEphemerals = 60999 - kFirstEphemeral + 1;

bool overlap(const Binding& a, const Binding& b) {
  const SocketAddress& x = a.address;
  const SocketAddress& y = b.address;
  if (x.ipv6 == y.ipv6) return x.is_any() || y.is_any() || x.ip == y.ip;
  const Binding& ipv6 = x.ipv6 ? a : b;
  return ipv6.address.is_any() && !ipv6.only_ipv6;
}

bool conflict(const Binding& a, const Binding& b) {
  return overlap(a, b) && !(a.reuse && b.reuse && !a.listening && !b.listening);
}

}  // namespace

bool PortSpace::in_use(const Binding& binding) const {
  const auto [first, last] = bindings_.equal_range(binding.address.port);
  for (auto at = first; at != last; ++at)
    if (at->second.owner != binding.owner && conflict(at->second, binding)) return true;
  return false;
}

Result<uint16_t> PortSpace::bind(Binding binding) {
  uint16_t& port = binding.address.port;
  if (port == 0) {
    const auto start = static_cast<uint16_t>(random_.next() % kEphemerals);
    uint16_t tried = 0;
    for (; tried < kEphemerals; ++tried) {
      port = static_cast<uint16_t>(kFirstEphemeral + (start + tried) % kEphemerals);
      if (!bindings_.contains(port)) break;
    }
    if (tried == kEphemerals) return tl::unexpected(EADDRNOTAVAIL);
  } else if (in_use(binding)) {
    return tl::unexpected(EADDRINUSE);
  }
  bindings_.emplace(port, binding);
  return port;
}

int PortSpace::listen(uint32_t owner, uint16_t port) {
  const auto [first, last] = bindings_.equal_range(port);
  for (auto at = first; at != last; ++at) {
    if (at->second.owner != owner) continue;
    Binding listening = at->second;
    listening.listening = true;
    if (in_use(listening)) return EADDRINUSE;
    at->second.listening = true;
    return 0;
  }
  return EINVAL;
}

void PortSpace::release(uint32_t owner, uint16_t port) {
  const auto [first, last] = bindings_.equal_range(port);
  for (auto at = first; at != last; ++at) {
    if (at->second.owner != owner) continue;
    bindings_.erase(at);
    return;
  }
}

}  // namespace rocemu::cm
