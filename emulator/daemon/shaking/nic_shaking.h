// NicShaking is what shakes the devices of a NIC (emulator/shake): one DeviceShaking for each, its
// port, and the decorators of programs' queues.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dpdk_io/port/port.h"
#include "emulator/daemon/control/session_host.h"
#include "emulator/daemon/shaking/shaken_port.h"
#include "emulator/shake/device_shaking.h"

namespace rocemu::daemon {

// It outlives the engine, and the ports that it wraps outlive it.
class NicShaking final : public QueueDecorator {
 public:
  // Precondition: settings.on(), with a seed.
  NicShaking(const shake::Settings& settings, uint32_t devices);

  const shake::Settings& settings() const { return settings_; }
  // The engine thread's.
  shake::DeviceShaking& device(uint32_t index) { return *devices_[index]; }
  // Stands before the device's port from now on; once for each device.
  dpdk_io::Port& wrap_port(uint32_t device, dpdk_io::Port& port);

  std::unique_ptr<device::CompletionRing> wrap_ring(uint32_t device,
                                                    std::unique_ptr<device::CompletionRing> ring,
                                                    uint32_t entries) override {
    return devices_[device]->wrap(std::move(ring), entries);
  }
  std::unique_ptr<device::WorkQueues> wrap_queues(uint32_t device,
                                                  std::unique_ptr<device::WorkQueues> queues,
                                                  const device::QpSpec& spec) override {
    return devices_[device]->wrap(std::move(queues), spec);
  }
  std::unique_ptr<device::EventChannel> wrap_events(
      uint32_t device, std::unique_ptr<device::EventChannel> events) override {
    return devices_[device]->wrap_async(std::move(events));
  }

 private:
  shake::Settings settings_;
  std::vector<std::unique_ptr<shake::DeviceShaking>> devices_;
  std::vector<std::unique_ptr<ShakenPort>> ports_;
};

}  // namespace rocemu::daemon
