// The NIC's state for people and tools: `rocemu status --json` prints this text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "emulator/daemon/attachment/links.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/device/attributes/device_config.h"
#include "emulator/dma/address_space.h"
#include "emulator/shake/common/settings.h"
#include "network/switching/report.h"

namespace rocemu::daemon {

// Status is put together from what each part of the NIC tells of itself.
struct Status {
  TimeNs uptime_ns = 0;
  std::optional<dma::Method> dma;  // empty: whichever works
  std::span<const device::HcaConfig> devices;
  EngineSnapshot snapshot;
  std::vector<LinkPair> links;                 // by device
  std::vector<network::PortReport> network{};  // empty: the switch is perfect
  std::string metrics{};                       // where they are served; empty: nowhere
  const cm::RdmaCm* cm = nullptr;              // nullptr: connections are not managed
  const shake::Settings* shake = nullptr;      // nullptr: the NIC is not shaken
  std::vector<shake::Counts> shaken{};         // by device, when it is
};

std::string to_json(const Status& status);

}  // namespace rocemu::daemon
