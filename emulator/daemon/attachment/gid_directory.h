// GidDirectory knows which of the devices on the in-process switch has which GID.
#pragma once

#include <mutex>
#include <unordered_map>

#include "emulator/device/hca.h"

namespace rocemu::daemon {

// Any thread may use it: addresses are asked for when connections are made, not by packets.
class GidDirectory final : public device::AddressResolver {
 public:
  void add(const device::PortConfig& port) {
    const std::lock_guard lock(mutex_);
    put(port);
  }
  // The port has other addresses now. One that another port has as well is the other's alone.
  void replace(const device::PortConfig& before, const device::PortConfig& now) {
    const std::lock_guard lock(mutex_);
    for (const device::GidEntry& entry : before.gids) {
      const auto found = macs_.find(entry.gid);
      if (found != macs_.end() && found->second == before.mac) macs_.erase(found);
    }
    put(now);
  }

  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = macs_.find(gid);
    if (found == macs_.end()) return false;
    mac = found->second;
    return true;
  }

 private:
  // An empty place of the table is no address.
  void put(const device::PortConfig& port) {
    for (const device::GidEntry& entry : port.gids)
      if (entry.gid != wire::Gid{}) macs_.emplace(entry.gid, port.mac);
  }

  std::mutex mutex_;
  std::unordered_map<wire::Gid, MacAddress> macs_;
};

}  // namespace rocemu::daemon
