// EngineSnapshot is what the engine tells of itself and its devices, taken between two turns.
#pragma once

#include <cstdint>
#include <vector>

#include "dpdk_io/port/port.h"
#include "emulator/congestion/settings.h"
#include "emulator/device/hca.h"
#include "emulator/transport/interface/counters.h"
#include "emulator/transport/interface/flow_report.h"

namespace rocemu::daemon {

struct ParallelStats {
  uint64_t parallel_turns = 0;
  uint64_t worker_turns = 0;  // devices' turns that helping threads took
  uint64_t shared_moves = 0;  // flushes of moves that were divided among threads
  unsigned most_threads = 1;  // that a turn was on
};

struct EngineStats {
  uint64_t turns = 0;
  uint64_t busy_turns = 0;
  uint64_t commands = 0;
  uint64_t inline_turns = 0;  // taken by the threads that had a command while the engine slept
  uint64_t yields = 0;
  uint64_t sleeps = 0;
  uint64_t block_modes = 0;  // the engine began to block so often (idle_policy.h)
  ParallelStats parallel;
};

struct DeviceSnapshot {
  device::ObjectCounts objects;
  transport::Counters counters;
  dpdk_io::PortStats port;
  std::vector<wire::Gid> groups;  // multicast groups to which QPs are attached
  congestion::Settings congestion;
  std::vector<transport::FlowReport> flows;  // those of the first kMaxFlows QPs that have one
  static constexpr size_t kMaxFlows = 256;
  std::vector<transport::RecoveryReport> recoveries;  // the same, where selective repeat is set
  std::vector<device::QpReport> qps;                  // some kMaxFlows at most
};

struct EngineSnapshot {
  std::vector<DeviceSnapshot> devices;
  EngineStats engine;
};

}  // namespace rocemu::daemon
