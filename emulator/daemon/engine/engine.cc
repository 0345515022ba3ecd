#include "emulator/daemon/engine/engine.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/cpu_relax.h"
#include "emulator/daemon/engine/engine_thread.h"

namespace rocemu::daemon {
namespace {

// The shortest sleep in block mode, about the kernel's own tick. A sleep that ends sooner has the
// timer set anew each time, which costs microseconds in a virtual machine, and the transport's
// deadline (mostly that of an early retransmission) hardly ever comes to pass. What is sent at a
// rate goes by its own time.
constexpr TimeNs kCoarseSleepNs = 4'000'000;
// After so many turns most of a command's consequences are over: a message of the connection
// manager is sent in one turn and arrives in the next.
constexpr unsigned kMaxInlineTurns = 4;
// Of a context's QPs in a turn, and of all together: each is looked at, whether it has posted or
// not. A program that rings for all of its QPs all the time leaves others less with more.
constexpr uint32_t kMaxRungOfOne = 32;
constexpr uint32_t kMaxRung = 512;

}  // namespace

void Engine::add_device(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, bool on_switch) {
  devices_.add(std::move(hca), port, on_switch);
  if (port.poll_fd() >= 0) wake_set_.add_port(port.poll_fd());
}

void Engine::start() {
  thread_ = start_engine_thread([this] { run(); });
}

void Engine::stop() {
  if (!thread_.joinable()) return;
  post(Task([this] { stopping_ = true; }));
  thread_.join();
}

void Engine::post(Task task) {
  commands_.post(std::move(task));
  if (!page_.shows_sleeping()) return;
  if (!lock_.try_lock()) return command_wake_.ring();
  const std::lock_guard held(lock_, std::adopt_lock);
  run_inline();
}

// The caller holds the lock. The engine is woken when there is more to do than a few turns' worth,
// or sooner than it knew when it went to sleep.
void Engine::run_inline() {
  unsigned turns = 0;
  do {
    timed_turn();
  } while (++turns < kMaxInlineTurns && !stopping_ && anything_to_do());
  stats_.inline_turns += turns;
  page_.show_crowded(false);
  if (stopping_ || anything_to_do() || wake_up_time() < sleeps_until_ns_) command_wake_.ring();
}

EngineContext& Engine::add_context(std::unique_ptr<EngineContext> context) {
  contexts_.push_back(std::move(context));
  return *contexts_.back();
}

void Engine::close_context(EngineContext& context) {
  std::erase_if(contexts_, [&](const auto& held) { return held.get() == &context; });
}

EngineSnapshot Engine::snapshot() const {
  EngineSnapshot snapshot{devices_.snapshot(), stats_};
  snapshot.engine.parallel = devices_.parallel_stats();
  return snapshot;
}

void Engine::run() {
  const EngineThread thread("engine");
  lock_.lock();
  while (!stopping_) {
    if (timed_turn()) {
      idle_policy_.on_work(clock_.now_ns());
      page_.show_turn(idle_policy_.behind(clock_.now_ns()));
    } else {
      page_.show_turn(false);
      idle();
    }
  }
  contexts_.clear();
  lock_.unlock();
}

bool Engine::timed_turn() {
  clock_.advance_to(monotonic_now_ns());
  const auto cpu = static_cast<uint32_t>(::sched_getcpu()) + 1;
  if (completion_host_.move_to(cpu)) page_.show_cpu(cpu);
  ++stats_.turns;
  const bool busy = turn();
  if (busy) ++stats_.busy_turns;
  return busy;
}

bool Engine::turn() {
  bool busy = false;
  if (commands_.pending()) {
    // A program may have posted before it sent this command, and its posts come first, unless so
    // many QPs were rung for that some are left.
    ring_doorbells();
    run_devices();
    devices_.take_lent();
    TurnBudget budget(clock_.now_ns());
    commands_.run(budget);
    ++stats_.commands;
    devices_.touch_all();
    busy = true;
  }
  ring_doorbells();
  busy |= run_devices();
  return busy;
}

// What is left is rung in the next turn, in which others come first. Rings are no work by
// themselves: a program that rings in vain does not keep the engine from yielding.
void Engine::ring_doorbells() {
  uint32_t rung = 0;
  const size_t count = contexts_.size();
  const size_t first = first_rung_ < count ? std::exchange(first_rung_, 0) : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = first + i < count ? first + i : first + i - count;
    if (rung >= kMaxRung) {
      first_rung_ = at;
      break;
    }
    transport::Endpoint& endpoint = contexts_[at]->hca().endpoint();
    rung += contexts_[at]->doorbells().scan(kMaxRungOfOne,
                                            [&](wire::Qpn qpn) { endpoint.on_doorbell(qpn); });
  }
  if (rung != 0) devices_.touch_all();
}

bool Engine::run_devices() {
  const bool busy = devices_.turn(clock_.now_ns());
  page_.show_crowded(devices_.takes_all_cpus());
  return busy;
}

void Engine::idle() {
  switch (idle_policy_.on_empty_turn(clock_.now_ns(), completion_host_.take_program_waits())) {
    case IdlePolicy::Action::poll:
      cpu_relax();
      break;
    case IdlePolicy::Action::yield:
      yield();
      break;
    case IdlePolicy::Action::sleep:
      sleep();
      break;
  }
}

void Engine::yield() {
  ++stats_.yields;
  const TimeNs before = monotonic_now_ns();
  const bool was_blocking = idle_policy_.block_mode(before);
  ::sched_yield();
  const TimeNs after = monotonic_now_ns();
  idle_policy_.on_yield(before, after);
  if (!was_blocking && idle_policy_.block_mode(after)) ++stats_.block_modes;
}

void Engine::sleep() {
  capture_.flush_if_due(clock_.now_ns());
  page_.show_sleeping();
  if (anything_to_do()) {
    idle_policy_.on_kept_awake();
  } else {
    ++stats_.sleeps;
    page_.show_crowded(false);
    sleeps_until_ns_ = wake_up_time();
    const TimeNs now = monotonic_now_ns();
    TimeNs limit = kNever;
    if (sleeps_until_ns_ != kNever) limit = sleeps_until_ns_ > now ? sleeps_until_ns_ - now : 0;
    lock_.unlock();
    idle_policy_.on_wake_up(!wake_set_.wait(limit));
    lock_.lock();
  }
  page_.show_awake();
}

bool Engine::anything_to_do() const {
  return commands_.pending() ||
         std::ranges::any_of(contexts_,
                             [](const auto& context) { return context->doorbells().any_rung(); }) ||
         devices_.any_has_work();
}

TimeNs Engine::wake_up_time() const {
  const TimeNs now = clock_.now_ns();
  TimeNs deadline = devices_.next_deadline();
  if (deadline != kNever && idle_policy_.block_mode(now))
    deadline = std::max(deadline, now + kCoarseSleepNs);
  return std::min(
      {deadline, devices_.next_send(), devices_.next_event(), capture_.next_flush_ns()});
}

}  // namespace rocemu::daemon
