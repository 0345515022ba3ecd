// The multicast groups that this machine is to be sent on one of its interfaces: memberships of
// kernel sockets, for which the kernel speaks IGMP and MLD and sets the interface's MAC filter. The
// sockets themselves get nothing. One socket a group, since a socket's memberships are limited
// (net.ipv4.igmp_max_memberships).
#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "base/net/ip_address.h"
#include "base/unique_fd.h"
#include "dpdk_io/port/multicast_groups.h"

namespace rocemu::dpdk_io {

class GroupMemberships final : public MulticastGroups {
 public:
  explicit GroupMemberships(unsigned interface_index) : interface_index_(interface_index) {}

  int join(const IpAddress& group) noexcept override;
  void keep(std::span<const IpAddress> groups) noexcept override;
  size_t count() const noexcept override { return sockets_.size(); }

 private:
  unsigned interface_index_;
  std::map<IpAddress, UniqueFd> sockets_;
};

}  // namespace rocemu::dpdk_io
