// What every session needs of the NIC it serves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_io/switch.h"
#include "emulator/daemon/engine.h"
#include "emulator/device/attributes.h"
#include "emulator/dma/address_space.h"

namespace rocemu::daemon {

class CmService;

struct Nic {
  Engine& engine;
  std::vector<device::HcaConfig> devices;  // by device_index
  std::optional<dma::Method> dma;          // empty: whichever works
  transport::TimeNs started_ns = 0;
  std::function<void()> shut_down;  // asked for by ROCEMU_OP_SHUTDOWN
  // The engine thread's; port N is device N's. nullptr: the ports are of no switch.
  dpdk_io::Switch* fabric = nullptr;
  CmService* cm = nullptr;  // the control thread's; nullptr: connections are not managed
};

}  // namespace rocemu::daemon
