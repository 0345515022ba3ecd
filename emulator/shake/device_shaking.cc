#include "emulator/shake/device_shaking.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "base/verbs/numbers.h"
#include "emulator/shake/frames/late_acks.h"
#include "emulator/shake/frames/overtaking.h"
#include "emulator/shake/memory/placement.h"
#include "emulator/shake/memory/scribble.h"
#include "emulator/shake/queues/completion_shuffle.h"
#include "emulator/shake/queues/event_timing.h"
#include "emulator/shake/queues/garbage.h"
#include "emulator/shake/queues/shaken_work_queues.h"
#include "emulator/wire/packet.h"

namespace rocemu::shake {

using enum Behaviour;

DeviceShaking::DeviceShaking(const Settings& settings, uint32_t device_index,
                             std::function<void()> pause)
    : settings_(settings),
      pause_(std::move(pause)),
      device_seed_(Random(settings.seed + device_index).next()) {
  if (has(late_acks))
    delays_.push_back(std::make_unique<LateAcks>(
        dice_for(late_acks), [this](wire::Qpn qpn) { return endpoint_->ack_timeout_ns(qpn); }));
  if (has(overtaking)) delays_.push_back(std::make_unique<Overtaking>(dice_for(overtaking)));
}

// Each user has a generator of its own, so that one's draws do not shift another's.
Dice DeviceShaking::dice_for(Behaviour behaviour) {
  const uint64_t seed = Random(device_seed_ + ++users_).next();
  return {seed, settings_.strength_percent, count_of(behaviour)};
}

device::HcaParts DeviceShaking::parts() {
  device::HcaParts parts;
  parts.memory = [this](device::MemoryRegions& regions) {
    std::unique_ptr<transport::Memory> memory = device::make_memory(regions);
    if (has(placement))
      memory = std::make_unique<Placement>(std::move(memory), dice_for(placement), pause_);
    if (has(scribble)) memory = std::make_unique<Scribble>(std::move(memory), dice_for(scribble));
    return memory;
  };
  parts.endpoint = [this](transport::Memory& memory, transport::EventSink& events,
                          const transport::TransportLimits& limits, uint32_t max_qps) {
    auto endpoint = device::make_endpoint(memory, events, limits, max_qps);
    endpoint_ = endpoint.get();
    return endpoint;
  };
  if (has(numbers)) parts.number_seed = settings_.seed | 1;
  return parts;
}

std::unique_ptr<device::CompletionRing> DeviceShaking::wrap(
    std::unique_ptr<device::CompletionRing> ring, uint32_t entries) {
  if (has(garbage)) ring = std::make_unique<Garbage>(std::move(ring), count_of(garbage));
  if (has(events)) ring = std::make_unique<EventTiming>(std::move(ring), agenda_, dice_for(events));
  if (!has(completions) && !has(flushes)) return ring;
  return std::make_unique<CompletionShuffle>(
      std::move(ring), entries, CompletionShuffle::Which{has(flushes), has(completions)}, holders_,
      agenda_, dice_for(has(completions) ? completions : flushes));
}

std::unique_ptr<device::WorkQueues> DeviceShaking::wrap(std::unique_ptr<device::WorkQueues> queues,
                                                        const device::QpSpec& spec) {
  ShakenWorkQueues::Parts parts;
  if (has(doorbells)) parts.doorbells = dice_for(doorbells);
  if (has(rnr) && spec.type == verbs::qp_type::kRc && spec.srq == 0) parts.rnr = dice_for(rnr);
  parts.ring = [this](wire::Qpn qpn) { endpoint_->on_doorbell(qpn); };
  return std::make_unique<ShakenWorkQueues>(std::move(queues), holders_, agenda_, parts);
}

std::unique_ptr<device::EventChannel> DeviceShaking::wrap_async(
    std::unique_ptr<device::EventChannel> events) {
  return std::make_unique<EventsAfterCompletions>(std::move(events), holders_);
}

TimeNs DeviceShaking::arrival_due(TimeNs now, std::span<const std::byte> frame) noexcept {
  wire::Packet packet;
  if (wire::parse_frame(frame, packet) != wire::ParseError::none) return now;
  TimeNs due = now;
  for (const auto& delay : delays_) due = std::max(due, delay->due(now, packet));
  return due;
}

}  // namespace rocemu::shake
