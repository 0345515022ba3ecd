#include "dpdk_io/kernel/group_memberships.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "dpdk_io/kernel/socket_address.h"

namespace rocemu::dpdk_io {

int GroupMemberships::join(const IpAddress& group) noexcept {
  if (sockets_.contains(group)) return 0;
  if (sockets_.size() >= kMaxGroups) return ENOBUFS;
  const bool ipv4 = group.is_ipv4();
  UniqueFd socket(::socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  group_req request{};
  request.gr_interface = interface_index_;
  const SocketAddress address = to_socket_address(group, 0, interface_index_);
  std::memcpy(&request.gr_group, address.get(), address.length);
  if (::setsockopt(socket.get(), ipv4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &request,
                   sizeof request) != 0)
    return errno;
  try {
    sockets_.emplace(group, std::move(socket));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

void GroupMemberships::keep(std::span<const IpAddress> groups) noexcept {
  std::erase_if(sockets_, [&](const auto& membership) {
    return std::ranges::find(groups, membership.first) == groups.end();
  });
}

}  // namespace rocemu::dpdk_io
