// All that shakes one device: it makes the decorators that stand before the device's memory, its
// frames and its programs' queues, by the chosen behaviours, and keeps what they share.
//
// Queues may be wrapped by another thread; all else belongs to the thread that has the device's
// turn. It outlives the device and all that it has wrapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "emulator/device/hca_parts.h"
#include "emulator/device/interface/host_interface.h"
#include "emulator/device/interface/specs.h"
#include "emulator/shake/common/agenda.h"
#include "emulator/shake/common/dice.h"
#include "emulator/shake/common/settings.h"
#include "emulator/shake/frames/arrival_delay.h"
#include "emulator/shake/queues/completion_holders.h"

namespace rocemu::shake {

class DeviceShaking {
 public:
  // `pause` lets programs look at data that is half placed; it may be empty.
  DeviceShaking(const Settings& settings, uint32_t device_index, std::function<void()> pause);
  DeviceShaking(const DeviceShaking&) = delete;
  DeviceShaking& operator=(const DeviceShaking&) = delete;

  // The parts that the device is to be made of; for one device.
  device::HcaParts parts();

  std::unique_ptr<device::CompletionRing> wrap(std::unique_ptr<device::CompletionRing> ring,
                                               uint32_t entries);
  std::unique_ptr<device::WorkQueues> wrap(std::unique_ptr<device::WorkQueues> queues,
                                           const device::QpSpec& spec);
  std::unique_ptr<device::EventChannel> wrap_async(std::unique_ptr<device::EventChannel> events);

  // False: frames are seen as they come.
  bool delays_arrivals() const { return !delays_.empty(); }
  // The time at which a frame that has arrived is to be seen: `now` or later.
  TimeNs arrival_due(TimeNs now, std::span<const std::byte> frame) noexcept;

  Agenda& agenda() { return agenda_; }
  const Counts& counts() const { return counts_; }
  const Settings& settings() const { return settings_; }

 private:
  bool has(Behaviour behaviour) const { return settings_.has(behaviour); }
  Dice dice_for(Behaviour behaviour);
  uint64_t& count_of(Behaviour behaviour) { return counts_[index_of(behaviour)]; }

  Settings settings_;
  std::function<void()> pause_;
  uint64_t device_seed_;
  std::atomic<uint64_t> users_{0};  // number of seeds that were drawn
  Counts counts_{};
  Agenda agenda_;
  CompletionHolders holders_;
  std::vector<std::unique_ptr<ArrivalDelay>> delays_;
  transport::Endpoint* endpoint_ = nullptr;  // the device's
};

}  // namespace rocemu::shake
