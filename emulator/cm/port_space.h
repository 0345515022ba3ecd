// PortSpace keeps who has bound which port of one port space, by the rules that sockets have
// (ip(7), SO_REUSEADDR in socket(7), IPV6_V6ONLY in ipv6(7)).
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "emulator/cm/interfaces.h"
#include "emulator/cm/types.h"

namespace rocemu::cm {

struct Binding {
  uint32_t owner = 0;
  SocketAddress address;
  bool reuse = false;
  bool only_ipv6 = false;
  bool listening = false;
};

class PortSpace {
 public:
  // `random` outlives this.
  explicit PortSpace(const RandomSource& random) : random_(random) {}

  // Binds; port 0 is replaced by a free one. The port, or EADDRINUSE, or EADDRNOTAVAIL when no port
  // is free.
  Result<uint16_t> bind(Binding binding);
  // EADDRINUSE when another one listens there.
  int listen(uint32_t owner, uint16_t port);
  // Changes the flags of a binding that exists.
  void set_flags(uint32_t owner, uint16_t port, bool reuse, bool only_ipv6);
  void release(uint32_t owner, uint16_t port);

 private:
  bool in_use(const Binding& binding) const;

  using Bindings = std::map<std::pair<uint16_t, uint32_t>, Binding>;  // by port and owner
  bool taken(uint16_t port) const;

  Bindings bindings_;
  const RandomSource& random_;
};

}  // namespace rocemu::cm
