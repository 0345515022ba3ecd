// The addresses of the NIC's devices, and which of them can talk to which. All devices hang on one
// network; who else is on it has to be said.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/cm/types.h"

namespace rocemu::cm {

struct Interface {
  uint64_t node_guid = 0;  // host order
  uint8_t active_mtu = 5;  // enum ibv_mtu
  std::vector<wire::Gid> gids;
  bool open = false;  // on a network where anybody may be
};

// An IP address with its port, as a sockaddr has it. An IPv4 address is ::ffff:a.b.c.d.
struct SocketAddress {
  bool ipv6 = false;
  wire::Gid ip{};
  uint16_t port = 0;
  uint32_t scope_id = 0;

  // 0.0.0.0 or ::, and, as in Linux' rdma_cm, the loopback addresses: no device has them.
  bool is_any() const;
  bool is_multicast() const;
};

// One address of one device.
struct Place {
  uint32_t device = 0;
  uint8_t gid_index = 0;
};

class Interfaces {
 public:
  explicit Interfaces(std::vector<Interface> devices, std::vector<wire::Gid> neighbours = {})
      : devices_(std::move(devices)), neighbours_(std::move(neighbours)) {}

  // The device is as it says from now on. An index that was a GID's stays one of an entry, if of an
  // empty one: ids may have it.
  void update(uint32_t device, Interface interface);

  const Interface& device(uint32_t index) const { return devices_[index]; }
  size_t count() const { return devices_.size(); }
  const wire::Gid& gid(Place place) const { return devices_[place.device].gids[place.gid_index]; }

  // Who has `ip`; an empty GID is nobody's.
  std::optional<Place> find(const wire::Gid& ip) const;
  // Whether anybody has `ip`: one of ours, a neighbour, or perhaps somebody on an open network.
  bool known(const wire::Gid& ip) const;
  // The address from which `destination` is reached: the first device's on that network, or, given
  // one, that device's.
  std::optional<Place> source_for(const wire::Gid& destination,
                                  std::optional<uint32_t> device) const;
  // The first address of that family that is not link-local: what "any" means as a destination.
  std::optional<Place> first(bool ipv6) const;

 private:
  std::vector<Interface> devices_;
  std::vector<wire::Gid> neighbours_;
};

}  // namespace rocemu::cm
