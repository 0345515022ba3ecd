// GidDirectory knows which of the devices on the in-process switch has which GID.
#pragma once

#include <unordered_map>

#include "emulator/device/hca.h"

namespace rocemu::daemon {

// It is filled before the engine starts, and only read afterwards.
class GidDirectory final : public device::AddressResolver {
 public:
  void add(const device::PortConfig& port) {
    for (const device::GidEntry& entry : port.gids) macs_.emplace(entry.gid, port.mac);
  }

  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override {
    const auto found = macs_.find(gid);
    if (found == macs_.end()) return false;
    mac = found->second;
    return true;
  }

 private:
  std::unordered_map<wire::Gid, MacAddress> macs_;
};

}  // namespace rocemu::daemon
