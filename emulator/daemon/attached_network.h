// A device's attachment as sessions see it: the network that its addresses are asked of.
#pragma once

#include <utility>

#include "emulator/daemon/attachment/path_finder.h"
#include "emulator/daemon/attachment/port_description.h"
#include "emulator/daemon/control/session_host.h"

namespace rocemu::daemon {

class AttachedNetwork final : public DeviceNetwork {
 public:
  // Both outlive it. `groups` is nullptr when nobody has to be told of multicast groups.
  AttachedNetwork(PathFinder& path_finder, dpdk_io::MulticastGroups* groups)
      : path_finder_(path_finder), groups_(groups) {}

  void find_path(const wire::Gid& destination, Found found) override {
    path_finder_.find(destination, std::move(found));
  }
  void learn(const wire::Gid& destination, const MacAddress& mac) override {
    path_finder_.learned().learn(destination, mac);
  }
  int join(const wire::Gid& group) override {
    return groups_ == nullptr ? 0 : groups_->join(group);
  }

 private:
  PathFinder& path_finder_;
  dpdk_io::MulticastGroups* groups_;
};

}  // namespace rocemu::daemon
