// The addresses of the NIC's devices, and the choice of the one from which a destination is
// reached. Who is on a device's network has to be said, unless it is one where anybody may be.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/cm/types.h"

namespace rocemu::cm {

// An entry of a device's GID table; an empty one has GID zero.
struct Address {
  wire::Gid gid{};
  uint8_t network_bits = 128;  // at most 128, as in device::GidEntry
};

struct Interface {
  uint64_t node_guid = 0;  // host order
  uint8_t active_mtu = 5;  // enum ibv_mtu
  std::vector<Address> addresses;
  bool open = false;      // on a network where anybody may be, and perhaps gateways to others
  uint32_t scope_id = 0;  // that of link-local addresses; 0: no interface of the kernel
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

// An address of this NIC: a device and an index of its GID table.
struct LocalGid {
  uint32_t device = 0;
  uint8_t gid_index = 0;
};

class Interfaces {
 public:
  explicit Interfaces(std::vector<Interface> devices, std::vector<wire::Gid> neighbours = {})
      : devices_(std::move(devices)), lost_(devices_.size()), neighbours_(std::move(neighbours)) {}

  // The device is as it says from now on. An index that was a GID's stays one of an entry, if of an
  // empty one: ids may have it.
  void update(uint32_t device, Interface interface);

  // A lost device keeps its addresses, as a network interface does whose RDMA device is gone.
  void set_lost(uint32_t device, bool lost) { lost_[device] = lost; }
  bool lost(uint32_t device) const { return lost_[device]; }

  const Interface& device(uint32_t index) const { return devices_[index]; }
  size_t count() const { return devices_.size(); }
  const wire::Gid& gid(LocalGid local_gid) const {
    return devices_[local_gid.device].addresses[local_gid.gid_index].gid;
  }

  // The address of this NIC that is `ip`, or, given one, that device's: a link-local one may be
  // that of several. Nobody has the empty GID.
  std::optional<LocalGid> find(const wire::Gid& ip, std::optional<uint32_t> device = {}) const;
  // The same; the scope of a link-local address says the device, if it is that of one.
  std::optional<LocalGid> find(const SocketAddress& address) const;
  // True when somebody whom `device` reaches has `ip`: one of our devices, a neighbour, or perhaps
  // a host on an open network.
  bool known(const wire::Gid& ip, uint32_t device) const;
  // The address from which `destination` is reached, of all devices' or, given one, of that one's:
  // the destination itself on an open network, else the first of those in the smallest network that
  // has it, else the first of an open device, where a gateway may know the way. The scope of a
  // link-local destination says the device, if it is that of one.
  std::optional<LocalGid> source_for(const SocketAddress& destination,
                                     std::optional<uint32_t> device) const;
  // The first address of that family that is not link-local: what "any" means as a destination.
  std::optional<LocalGid> first(bool ipv6) const;

 private:
  // The device that a link-local address is on the network of, when its scope says so.
  std::optional<uint32_t> device_of(const SocketAddress& address) const;
  // The first of the addresses to which rank(device, address) gives the highest rank; 0 means that
  // it will not do. Empty entries are not asked about.
  template <class Rank>
  std::optional<LocalGid> best(Rank rank) const;

  std::vector<Interface> devices_;
  std::vector<bool> lost_;  // by device
  std::vector<wire::Gid> neighbours_;
};

}  // namespace rocemu::cm
