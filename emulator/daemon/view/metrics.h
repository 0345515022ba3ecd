// A NIC's counters in Prometheus' text format, version 0.0.4 (prometheus.io/docs/instrumenting/
// exposition_formats). The names are those of sysfs, with "rocemu_" before and the unit behind
// them: docs/counters.md.
#pragma once

#include <span>
#include <string>
#include <unordered_map>

#include "base/time.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

struct Metrics {
  TimeNs uptime_ns = 0;
  std::span<const device::HcaConfig> devices;
  std::span<const uint64_t> link_downs;  // by device; empty: none
  // Has kMaxFlows QPs of a device at most, which bounds the text.
  const EngineSnapshot& snapshot;
  std::unordered_map<pid_t, std::string> programs{};  // their names, where they are known
};

// The value of the header Content-Type.
inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

std::string to_prometheus(const Metrics& metrics);

}  // namespace rocemu::daemon
