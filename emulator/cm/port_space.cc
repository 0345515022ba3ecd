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
  if (x.ipv6 == y.ipv6)
    return x.is_any() || y.is_any() ||
           (x.ip == y.ip && (!x.ip.is_link_local_ipv6() || x.scope_id == y.scope_id));
  const Binding& ipv6 = x.ipv6 ? a : b;
  return ipv6.address.is_any() && !ipv6.only_ipv6;
}

bool conflict(const Binding& a, const Binding& b) {
  return overlap(a, b) && !(a.reuse && b.reuse && !a.listening && !b.listening);
}

}  // namespace

bool PortSpace::in_use(const Binding& binding) const {
  const uint16_t port = binding.address.port;
  for (auto at = bindings_.lower_bound({port, 0}); at != bindings_.end(); ++at) {
    if (at->first.first != port) break;
    if (at->second.owner != binding.owner && conflict(at->second, binding)) return true;
  }
  return false;
}

bool PortSpace::taken(uint16_t port) const {
  const auto first = bindings_.lower_bound({port, 0});
  return first != bindings_.end() && first->first.first == port;
}

Result<uint16_t> PortSpace::bind(Binding binding) {
  uint16_t& port = binding.address.port;
  if (port == 0) {
    const auto start = static_cast<uint16_t>(random_() % kEphemerals);
    uint16_t tried = 0;
    for (; tried < kEphemerals; ++tried) {
      port = static_cast<uint16_t>(kFirstEphemeral + (start + tried) % kEphemerals);
      if (!taken(port)) break;
    }
    if (tried == kEphemerals) return tl::unexpected(EADDRNOTAVAIL);
  } else if (in_use(binding)) {
    return tl::unexpected(EADDRINUSE);
  }
  bindings_.emplace(std::pair(port, binding.owner), binding);
  return port;
}

int PortSpace::listen(uint32_t owner, uint16_t port) {
  const auto at = bindings_.find({port, owner});
  if (at == bindings_.end()) return EINVAL;
  Binding listening = at->second;
  listening.listening = true;
  if (in_use(listening)) return EADDRINUSE;
  at->second.listening = true;
  return 0;
}

void PortSpace::set_flags(uint32_t owner, uint16_t port, bool reuse, bool only_ipv6) {
  const auto at = bindings_.find({port, owner});
  if (at == bindings_.end()) return;
  at->second.reuse = reuse;
  at->second.only_ipv6 = only_ipv6;
}

void PortSpace::release(uint32_t owner, uint16_t port) { bindings_.erase({port, owner}); }

}  // namespace rocemu::cm
