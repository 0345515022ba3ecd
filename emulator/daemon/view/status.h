// The NIC's state for people and tools: `rocemu status --json` prints this text.
#pragma once

#include <string>
#include <vector>

#include "dpdk_io/port/port.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/view/links.h"
#include "emulator/transport/interface/counters.h"

namespace rocemu::daemon {

struct DeviceSnapshot {
  device::ObjectCounts objects;
  transport::Counters counters;
  dpdk_io::PortStats port;
  LinkPair links;
  std::vector<wire::Gid> groups;  // to which QPs are attached
};

struct Snapshot {
  std::vector<DeviceSnapshot> devices;
  EngineStats engine;
};

// The engine thread.
Snapshot take_snapshot(const Nic& nic);

// The control thread.
std::string to_json(const Nic& nic, const Snapshot& snapshot);

}  // namespace rocemu::daemon
