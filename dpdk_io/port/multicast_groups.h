// The multicast groups that a port is to be sent from its network.
#pragma once

#include <cstddef>
#include <span>

#include "base/net/ip_address.h"

namespace rocemu::dpdk_io {

class MulticastGroups {
 public:
  static constexpr size_t kMaxGroups = 512;

  virtual ~MulticastGroups() = default;

  // 0, also for a group it is in already, or an errno value: ENOBUFS beyond kMaxGroups.
  virtual int join(const IpAddress& group) noexcept = 0;
  // Leaves every group that is not among these.
  virtual void keep(std::span<const IpAddress> groups) noexcept = 0;
  virtual size_t count() const noexcept = 0;
};

}  // namespace rocemu::dpdk_io
