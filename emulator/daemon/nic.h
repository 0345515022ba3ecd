// Nic is what is shown of the NIC, and changed, as a whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/linked_port.h"
#include "dpdk_io/port/multicast_groups.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/attachment/path_finder.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/device/attributes/device_config.h"
#include "emulator/dma/address_space.h"

namespace rocemu::daemon {

class CmService;
class FaultInjector;
class NicTracing;
class NicShaking;

struct Nic {
  Engine& engine;
  std::vector<device::HcaConfig> devices;  // by device_index
  std::optional<dma::Method> dma;          // empty: whichever works
  TimeNs started_ns = 0;
  std::function<void()> shut_down;  // asked for by ROCEMU_OP_SHUTDOWN
  CmService* cm = nullptr;          // the control thread's; nullptr: connections are not managed
  FaultInjector* faults = nullptr;  // the control thread's; nullptr: there are none
  // The engine thread's; port N is device N's. Empty: their links cannot be set.
  std::vector<dpdk_io::LinkedPort*> ports{};
  // The engine thread's; nullptr: no device is on it.
  const dpdk_io::Switch* fabric = nullptr;
  // The devices' path finders; nullptr for a device on the in-process switch. Empty: all are.
  std::vector<PathFinder*> path_finders{};

  NicTracing* tracing = nullptr;  // the control thread's; nullptr: it cannot be traced
  NicShaking* shaking = nullptr;  // nullptr: the NIC is not shaken

  // The control thread's, by device; nullptr: nobody has to be told of multicast groups.
  std::vector<dpdk_io::MulticastGroups*> groups{};

  std::string metrics{};  // where they are served; empty: nowhere

  // The control thread's, by device: how often its port went from up to down. Empty: never.
  std::vector<uint64_t> link_downs{};

  uint64_t link_downs_of(uint32_t device) const {
    return link_downs.empty() ? 0 : link_downs[device];
  }
  dpdk_io::MulticastGroups* groups_of(uint32_t device) const {
    return groups.empty() ? nullptr : groups[device];
  }
};

}  // namespace rocemu::daemon
