#include "emulator/daemon/engine/parallel_turns.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <thread>
#include <utility>

#include "base/monotonic_clock.h"

namespace rocemu::daemon {
namespace {

// Four frames of full size in two turns: from there on a frame costs more than to wait for each
// other at the end of a turn.
constexpr uint64_t kLoadedBytes = 16384;

static_assert(dpdk_io::Switch::kMaxPorts == TurnWorkers::kMaxJobs);  // both are a word's bits

}  // namespace

ParallelTurns::ParallelTurns(ParallelMode mode, unsigned threads, dpdk_io::Switch& fabric)
    : switch_(fabric), policy_(mode, threads), mode_(mode), workers_(threads - 1) {}

bool ParallelTurns::next_is_together(TimeNs now, Devices devices) {
  loaded_ = look_at_load(devices);
  const auto loaded = static_cast<unsigned>(std::popcount(loaded_));
  // While devices have their turns at the same time, nothing is seen of programs, and what was seen
  // before holds.
  if (!together_) {
    programs_ = std::max(programs_now_, programs_before_);
    programs_before_ = std::exchange(programs_now_, 0);
  }
  const TurnDivision division = policy_.next_turn(now, bytes_moved_, {loaded, programs_});
  threads_ = division.threads;
  together_ = threads_ > 1 && !division.by_program;
  return together_;
}

void ParallelTurns::run(unsigned programs, const std::function<void(unsigned)>& move) noexcept {
  programs_now_ = std::max(programs_now_, programs);
  const unsigned threads = together_ ? 1 : std::min(threads_, programs);
  if (threads < 2) {
    for (unsigned program = 0; program < programs; ++program) move(program);
    return;
  }
  unsigned by_workers = 0;
  for (unsigned begin = 0; begin < programs; begin += TurnWorkers::kMaxJobs) {
    const unsigned jobs = std::min(programs - begin, TurnWorkers::kMaxJobs);
    const auto move_one = [&move, begin](unsigned job) { move(begin + job); };
    by_workers +=
        workers_.run(~uint64_t{0} >> (TurnWorkers::kMaxJobs - jobs), threads - 1, move_one, [] {});
  }
  if (by_workers == 0) return;
  ++stats_.shared_moves;
  stats_.most_threads = std::max(stats_.most_threads, threads);
}

// Returns a bit for each device that has moved much lately. A request and its answer often take
// turns, so two turns count; those that the device had, as not every one has one in each turn of
// the engine.
uint64_t ParallelTurns::look_at_load(Devices devices) {
  uint64_t loaded = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    Load& load = loads_[i];
    if (const uint64_t turns = devices[i]->turns(); turns != load.turns) {
      const uint64_t moved = devices[i]->bytes_moved() - load.bytes_moved;
      load.much = moved + std::exchange(load.bytes_last_turn, moved) >= kLoadedBytes;
      load.turns = turns;
      load.bytes_moved += moved;
      bytes_moved_ += moved;
    }
    if (devices[i]->on_switch() && (load.much || mode_ == ParallelMode::always))
      loaded |= uint64_t{1} << i;
  }
  return loaded;
}

// A job is a device's turn, numbered from first_ on, so that those which had to wait come first.
bool ParallelTurns::turn(TimeNs now, Devices devices) {
  std::atomic<bool> busy{false};
  std::atomic<bool> spent{false};
  std::atomic<uint64_t> left_out{0};
  std::atomic<uint64_t> by_workers{0};
  const std::thread::id engine = std::this_thread::get_id();
  const auto take_turn = [&](size_t index, TurnBudget& budget) {
    if (devices[index]->turn(now, budget)) busy.store(true, std::memory_order_relaxed);
  };
  const auto take_job = [&](unsigned job) {
    if (spent.load(std::memory_order_relaxed)) {
      left_out.fetch_or(uint64_t{1} << job, std::memory_order_relaxed);
      return;
    }
    TurnBudget budget(now);
    take_turn((job + first_) % dpdk_io::Switch::kMaxPorts, budget);
    if (budget.spent()) spent.store(true, std::memory_order_relaxed);
    if (std::this_thread::get_id() != engine) by_workers.fetch_add(1, std::memory_order_relaxed);
  };
  const auto take_others = [&] {
    TurnBudget budget(monotonic_now_ns());
    for (size_t taken = 0; taken < devices.size() && !budget.spent(); ++taken) {
      if ((loaded_ >> next_other_ & 1) == 0) take_turn(next_other_, budget);
      next_other_ = (next_other_ + 1) % devices.size();
    }
  };
  switch_.hold(now);
  // The functions go by reference, since a std::function with a copy of them would allocate.
  workers_.run(std::rotr(loaded_, static_cast<int>(first_)), threads_ - 1, std::ref(take_job),
               std::ref(take_others));
  switch_.carry_held(now);
  ++stats_.parallel_turns;
  stats_.worker_turns += by_workers.load(std::memory_order_relaxed);
  stats_.most_threads = std::max(stats_.most_threads, threads_);
  const uint64_t left = left_out.load(std::memory_order_relaxed);
  if (left == 0) return busy.load(std::memory_order_relaxed);
  first_ = (first_ + static_cast<unsigned>(std::countr_zero(left))) % dpdk_io::Switch::kMaxPorts;
  return true;
}

}  // namespace rocemu::daemon
