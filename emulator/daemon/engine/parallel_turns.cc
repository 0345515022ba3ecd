#include "emulator/daemon/engine/parallel_turns.h"

#include <atomic>
#include <bit>
#include <functional>
#include <utility>

namespace rocemu::daemon {
namespace {

// Four frames of full size in two turns: from there on a frame costs more than to wait for each
// other at the end of a turn.
constexpr uint64_t kLoadedBytes = 16384;

static_assert(dpdk_io::Switch::kMaxPorts <= TurnWorkers::kMaxJobs);

}  // namespace

ParallelTurns::ParallelTurns(ParallelMode mode, dpdk_io::Switch& fabric)
    : switch_(fabric), policy_(mode), mode_(mode) {}

bool ParallelTurns::next_is_together(TimeNs now, Devices devices) {
  loaded_ = look_at_load(devices);
  together_ = policy_.next_turn(now, bytes_moved_, std::popcount(loaded_) >= 2);
  return together_;
}

// Returns a bit for each device that has moved much lately. A request and its answer often take
// turns, so two turns count.
uint64_t ParallelTurns::look_at_load(Devices devices) {
  uint64_t loaded = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i]->on_switch()) continue;
    Load& load = loads_[i];
    const uint64_t moved = devices[i]->bytes_moved() - load.bytes_moved;
    const bool much = moved + std::exchange(load.bytes_last_turn, moved) >= kLoadedBytes;
    load.bytes_moved += moved;
    bytes_moved_ += moved;
    if (much || mode_ == ParallelMode::always) loaded |= uint64_t{1} << i;
  }
  return loaded;
}

bool ParallelTurns::turn(TimeNs now, Devices devices) {
  std::atomic<bool> busy{false};
  const auto take_turn = [&](size_t index) {
    TurnBudget budget(now);
    if (devices[index]->turn(now, budget)) busy.store(true, std::memory_order_relaxed);
  };
  const auto take_others = [&] {
    for (size_t i = 0; i < devices.size(); ++i)
      if ((loaded_ >> i & 1) == 0) take_turn(i);
  };
  switch_.hold(now);
  // The functions go by reference, since a std::function with a copy of them would allocate.
  stats_.worker_turns += workers_.run(loaded_, std::ref(take_turn), std::ref(take_others));
  switch_.carry_held(now);
  ++stats_.parallel_turns;
  return busy.load(std::memory_order_relaxed);
}

}  // namespace rocemu::daemon
