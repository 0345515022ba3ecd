// Both ends of a connection, as they were when its first packet came to one of them, or when they
// got to RTS after that.
#pragma once

#include <cstdint>

#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/wire/types.h"

namespace rocemu::inspection {

// A QP among all of the NIC.
struct QpPlace {
  uint32_t device = 0;
  wire::Qpn qpn{};
  bool operator==(const QpPlace&) const = default;
};

struct Meeting {
  bool met = false;
  device::QpAttr own{};
  wire::Gid own_gid{};  // the address that this end sends from
  QpPlace peer{};
  device::QpAttr peers{};
  wire::Gid peer_gid{};
  // The packet with the first PSN that the peer sends has come here, and this end's to the peer:
  // the connection is in use that way.
  bool peer_has_begun = false;
  bool own_has_begun = false;
};

}  // namespace rocemu::inspection
