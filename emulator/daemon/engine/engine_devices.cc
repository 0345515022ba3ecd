#include "emulator/daemon/engine/engine_devices.h"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "emulator/dma/movers.h"

namespace rocemu::daemon {
namespace {

// The number of CPUs that this process may use.
unsigned usable_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0
             ? static_cast<unsigned>(CPU_COUNT(&allowed))
             : 1;
}

}  // namespace

// Programs need CPUs as well: with one of two taken from programs that poll it never paid, and with
// 15 of 16 eight pairs moved half of what they do with eight (docs/performance.md).
unsigned parallel_threads(ParallelMode mode, unsigned asked, unsigned usable_cpus,
                          unsigned devices_on_switch) {
  if (mode == ParallelMode::never) return 1;
  const unsigned threads = asked != 0                        ? asked
                           : mode == ParallelMode::automatic ? (usable_cpus + 1) / 2
                                                             : std::max(usable_cpus, 2U);
  const unsigned most = mode == ParallelMode::always ? devices_on_switch : threads;
  return std::min({threads, most, ParallelPolicy::kMaxThreads});
}

void EngineDevices::add(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, bool on_switch) {
  devices_.push_back(std::make_unique<EngineDevice>(std::move(hca), port, pool_, on_switch));
}

void EngineDevices::set_parallel(ParallelMode mode, unsigned threads, dpdk_io::Switch& fabric) {
  const auto on_switch = static_cast<unsigned>(
      std::ranges::count_if(devices_, [](const auto& device) { return device->on_switch(); }));
  usable_cpus_ = usable_cpus();
  threads = parallel_threads(mode, threads, usable_cpus_, on_switch);
  if (threads < 2) return;
  try {
    parallel_turns_ = std::make_unique<ParallelTurns>(mode, threads, fabric);
  } catch (const std::system_error& error) {
    if (mode != ParallelMode::automatic) throw;
    spdlog::warn("devices will not work at the same time: {}", error.what());
  }
}

bool EngineDevices::turn(TimeNs now) {
  const bool together =
      parallel_turns_ != nullptr && parallel_turns_->next_is_together(now, devices_);
  const bool busy = together ? parallel_turns_->turn(now, devices_) : turn_by_turn(now);
  show_withheld(now);
  return busy;
}

bool EngineDevices::turn_by_turn(TimeNs now) {
  const dma::SharedMoves shared(parallel_turns_ != nullptr ? &parallel_turns_->movers() : nullptr);
  TurnBudget budget(now);
  bool busy = false;
  for (size_t taken = 0; taken < devices_.size() && !budget.spent(); ++taken) {
    busy |= devices_[next_]->turn(now, budget);
    next_ = (next_ + 1) % devices_.size();
  }
  return busy;
}

void EngineDevices::show_withheld(TimeNs now) {
  const auto withholds = [](const auto& device) { return device->withholds(); };
  if (std::ranges::none_of(devices_, withholds)) return;
  take_lent();
  for (const auto& device : devices_)
    if (device->withholds()) device->show_withheld(now);
}

void EngineDevices::let_payload_be_lent(dpdk_io::Switch& fabric, dpdk_io::TakeLent take) {
  fabric.let_payload_be_lent(take);
  lending_switch_ = &fabric;
  take_lent_ = take;
}

void EngineDevices::take_lent() noexcept {
  if (lending_switch_ == nullptr) return;
  lending_switch_->take_lent();
  for (const auto& device : devices_) device->frames().take_lent(take_lent_);
}

void EngineDevices::touch_all() {
  for (const auto& device : devices_) device->touch();
}

bool EngineDevices::any_has_work() const {
  return std::ranges::any_of(devices_, [](const auto& device) { return device->has_work(); });
}

TimeNs EngineDevices::next_deadline() const {
  TimeNs until = kNever;
  for (const auto& device : devices_)
    until = std::min(until, device->hca().endpoint().next_deadline());
  return until;
}

TimeNs EngineDevices::next_send() const {
  TimeNs until = kNever;
  for (const auto& device : devices_) until = std::min(until, device->hca().endpoint().next_send());
  return until;
}

TimeNs EngineDevices::next_event() const {
  TimeNs until = kNever;
  for (const auto& device : devices_) until = std::min(until, device->next_event());
  return until;
}

std::vector<DeviceSnapshot> EngineDevices::snapshot() const {
  std::vector<DeviceSnapshot> snapshots;
  for (const auto& device : devices_) snapshots.push_back(device->snapshot());
  return snapshots;
}

ParallelStats EngineDevices::parallel_stats() const {
  return parallel_turns_ != nullptr ? parallel_turns_->stats() : ParallelStats{};
}

}  // namespace rocemu::daemon
