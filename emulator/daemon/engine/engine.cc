#include "emulator/daemon/engine/engine.h"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "emulator/daemon/engine/engine_thread.h"
#include "emulator/daemon/rings/shared_words.h"

namespace rocemu::daemon {
namespace {

constexpr TimeNs kCaptureFlushNs = 100'000'000;  // a capture on disk is at most this old
// While a program hogs the core: about the kernel's own tick. A sleep that ends sooner has the
// timer set anew each time, which costs microseconds in a virtual machine, and the transport's
// deadline (mostly that of an early retransmission) hardly ever comes to pass.
constexpr TimeNs kCoarseSleepNs = 4'000'000;
// What a command has caused is mostly over after that: a message of the connection manager is sent
// in one turn and arrives in the next.
constexpr unsigned kBorrowedTurns = 4;

// That this process may use.
unsigned cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0
             ? static_cast<unsigned>(CPU_COUNT(&allowed))
             : 1;
}

}  // namespace

Engine::Engine(dpdk_io::FramePool& pool)
    : pool_(pool),
      page_memory_("rocemu-engine", sizeof(rocemu_engine_page), SharedMemory::Others::only_read),
      page_(*reinterpret_cast<rocemu_engine_page*>(page_memory_.data())),
      engine_page_fd_(page_memory_.take_fd()),
      command_wake_(wake_set_) {
  page_.magic = ROCEMU_ABI_MAGIC;
  page_.abi_version = ROCEMU_ABI_VERSION;
}

Engine::~Engine() { stop(); }

void Engine::add_device(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, bool on_switch) {
  devices_.push_back(std::make_unique<EngineDevice>(std::move(hca), port, pool_, on_switch));
  if (port.poll_fd() >= 0) wake_set_.add_port(port.poll_fd());
}

void Engine::set_parallel(ParallelMode mode, dpdk_io::Switch& fabric) {
  const auto on_switch =
      std::ranges::count_if(devices_, [](const auto& device) { return device->on_switch(); });
  const bool automatic = mode == ParallelMode::automatic;
  if (mode == ParallelMode::never || on_switch < 2) return;
  if (automatic && cores() < ParallelTurns::kThreads) return;
  try {
    parallel_turns_ = std::make_unique<ParallelTurns>(mode, fabric);
  } catch (const std::system_error& error) {
    if (!automatic) throw;
    spdlog::warn("devices will not work at the same time: {}", error.what());
  }
  crowds_ = cores() <= ParallelTurns::kThreads;
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
  if (load_seq_cst(page_.sleeping) == 0) return;
  if (!lock_.try_lock()) return command_wake_.ring();
  run_inline();
  lock_.unlock();
}

// Needs the token. The engine is woken when there is more to do than a few turns' worth, or sooner
// than it knew when it went to sleep.
void Engine::run_inline() {
  unsigned turns = 0;
  do {
    timed_turn();
  } while (++turns < kBorrowedTurns && !stopping_ && anything_to_do());
  stats_.borrowed_turns += turns;
  show_crowded(false);
  if (stopping_ || anything_to_do() || wake_up_time() < sleeps_until_ns_) command_wake_.ring();
}

EngineContext& Engine::add_context(std::unique_ptr<EngineContext> context) {
  contexts_.push_back(std::move(context));
  return *contexts_.back();
}

void Engine::close_context(EngineContext& context) {
  std::erase_if(contexts_, [&](const auto& held) { return held.get() == &context; });
}

EngineStats Engine::stats() const {
  EngineStats stats = stats_;
  if (parallel_turns_ != nullptr) stats.parallel = parallel_turns_->stats();
  return stats;
}

void Engine::run() {
  const EngineThread thread("engine");
  lock_.lock();
  while (!stopping_) {
    if (timed_turn()) {
      idle_policy_.on_work();
    } else {
      idle();
    }
  }
  contexts_.clear();
  lock_.unlock();
}

bool Engine::timed_turn() {
  clock_.advance_to(monotonic_now_ns());
  if (core_.look()) store_release(page_.core, core_.number());
  ++stats_.turns;
  const bool busy = turn();
  if (busy) ++stats_.busy_turns;
  return busy;
}

bool Engine::turn() {
  bool busy = false;
  if (commands_.pending()) {
    // What a program posted before it asked for something is seen before it.
    ring_doorbells();
    run_devices();
    commands_.run();
    ++stats_.commands;
    for (auto& device : devices_) device->touch();
    busy = true;
  }
  busy |= ring_doorbells();
  busy |= run_devices();
  return busy;
}

bool Engine::ring_doorbells() {
  bool any = false;
  for (const auto& context : contexts_) {
    transport::Endpoint& endpoint = context->hca().endpoint();
    any |= context->doorbells().scan([&](wire::Qpn qpn) { endpoint.on_doorbell(qpn); });
  }
  if (any)
    for (auto& device : devices_) device->touch();
  return any;
}

void Engine::show_crowded(bool crowded) {
  if (std::exchange(shows_crowded_, crowded) != crowded)
    store_release(page_.crowded, uint32_t{crowded});
}

bool Engine::run_devices() {
  const TimeNs now = clock_.now_ns();
  if (parallel_turns_ != nullptr) {
    const bool busy = parallel_turns_->turn(now, devices_);
    show_crowded(crowds_ && parallel_turns_->together());
    return busy;
  }
  bool busy = false;
  for (const auto& device : devices_) busy |= device->turn(now);
  return busy;
}

void Engine::idle() {
  switch (idle_policy_.on_empty_turn(clock_.now_ns(), core_.take_program_waits())) {
    case IdlePolicy::Action::poll:
      __builtin_ia32_pause();
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
  flush_capture();
  bool timed_out = false;
  store_seq_cst(page_.sleeping, 1);
  if (!anything_to_do()) {
    ++stats_.sleeps;
    show_crowded(false);
    sleeps_until_ns_ = wake_up_time();
    const TimeNs now = monotonic_now_ns();
    TimeNs limit = kNever;
    if (sleeps_until_ns_ != kNever) limit = sleeps_until_ns_ > now ? sleeps_until_ns_ - now : 0;
    lock_.unlock();
    timed_out = !wake_set_.wait(limit);
    lock_.lock();
  }
  store_release(page_.sleeping, 0);
  idle_policy_.on_wake_up(timed_out);
}

bool Engine::anything_to_do() const {
  if (commands_.pending()) return true;
  for (const auto& context : contexts_)
    if (context->doorbells().any_rung()) return true;
  for (const auto& device : devices_)
    if (device->has_work()) return true;
  return false;
}

TimeNs Engine::wake_up_time() const {
  TimeNs until = kNever;
  for (const auto& device : devices_)
    until = std::min(until, device->hca().endpoint().next_deadline());
  if (until != kNever && idle_policy_.block_mode(clock_.now_ns()))
    until = std::max(until, clock_.now_ns() + kCoarseSleepNs);
  for (const auto& device : devices_) until = std::min(until, device->next_event(clock_.now_ns()));
  if (capture_ != nullptr && capture_->frames_written() != flushed_frames_)
    until = std::min(until, next_flush_ns_);
  return until;
}

void Engine::flush_capture() {
  if (capture_ == nullptr || capture_->frames_written() == flushed_frames_ ||
      clock_.now_ns() < next_flush_ns_)
    return;
  capture_->flush();
  flushed_frames_ = capture_->frames_written();
  next_flush_ns_ = clock_.now_ns() + kCaptureFlushNs;
}

}  // namespace rocemu::daemon
