#include "emulator/daemon/engine.h"

#include <pthread.h>
#include <rte_lcore.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>

#include "emulator/daemon/shared_words.h"

namespace rocemu::daemon {
namespace {

using transport::kNever;
using transport::TimeNs;

constexpr TimeNs kEventRetryNs = 1'000'000;      // for events that found their pipe full
constexpr TimeNs kCaptureFlushNs = 100'000'000;  // a capture on disk is at most this old
constexpr int kNice = -10;
// While a program hogs the core: about the kernel's own tick. A sleep that ends sooner has the
// timer set anew each time, which costs microseconds in a virtual machine, and the transport's
// deadline (mostly that of an early retransmission) hardly ever comes to pass.
constexpr TimeNs kCoarseSleepNs = 4'000'000;
// What a command has caused is mostly over after that: a message of the connection manager is sent
// in one turn and arrives in the next.
constexpr unsigned kBorrowedTurns = 4;

// Both are favours: an ordinary user gets neither the priority nor an error.
void ask_for_favours() {
  ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
}

// A place in DPDK's caches of free frames, which are kept by thread: without one, each allocation
// goes to the shared part of the pool. There may be none left; it works without.
class FrameCache {
 public:
  FrameCache() : registered_(::rte_thread_register() == 0) {}
  ~FrameCache() {
    if (registered_) ::rte_thread_unregister();
  }
  FrameCache(const FrameCache&) = delete;
  FrameCache& operator=(const FrameCache&) = delete;

 private:
  bool registered_;
};

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

void Engine::add_device(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port) {
  devices_.push_back(std::make_unique<Device>(std::move(hca), port, pool_));
  if (port.poll_fd() >= 0) wake_set_.add_port(port.poll_fd());
}

void Engine::start() {
  // Signals are the control thread's, but for what an access of the engine's own may give
  // (dma/guarded_access.h).
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGBUS);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Engine::stop() {
  if (!thread_.joinable()) return;
  post(Task([this] { stopping_ = true; }));
  thread_.join();
}

void Engine::post(Task task) {
  commands_.post(std::move(task));
  if (load_seq_cst(page_.sleeping) == 0) return;
  if (!token_.try_take()) return command_wake_.ring();
  borrow_turns();
  token_.give_back();
}

// Needs the token. The engine is woken when there is more to do than a few turns' worth, or sooner
// than it knew when it went to sleep.
void Engine::borrow_turns() {
  unsigned turns = 0;
  do {
    timed_turn();
  } while (++turns < kBorrowedTurns && !stopping_ && anything_to_do());
  stats_.borrowed_turns += turns;
  if (stopping_ || anything_to_do() || wake_up_time() < sleeps_until_ns_) command_wake_.ring();
}

EngineContext& Engine::add_context(std::unique_ptr<EngineContext> context) {
  contexts_.push_back(std::move(context));
  return *contexts_.back();
}

void Engine::close_context(EngineContext& context) {
  std::erase_if(contexts_, [&](const auto& held) { return held.get() == &context; });
}

void Engine::run() {
  ::pthread_setname_np(::pthread_self(), "engine");
  ask_for_favours();
  const FrameCache frame_cache;
  token_.take();
  while (!stopping_) {
    if (timed_turn()) {
      idle_policy_.on_work();
    } else {
      idle();
    }
  }
  contexts_.clear();
  token_.give_back();
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
    for (auto& device : devices_) run_device(*device);
    commands_.run();
    ++stats_.commands;
    for (auto& device : devices_) device->touched = true;
    busy = true;
  }
  busy |= ring_doorbells();
  for (auto& device : devices_) busy |= run_device(*device);
  return busy;
}

bool Engine::ring_doorbells() {
  bool any = false;
  for (const auto& context : contexts_) {
    transport::Endpoint& endpoint = context->hca().endpoint();
    any |= context->doorbells().scan([&](wire::Qpn qpn) { endpoint.on_doorbell(qpn); });
  }
  if (any)
    for (auto& device : devices_) device->touched = true;
  return any;
}

bool Engine::run_device(Device& device) {
  transport::Endpoint& endpoint = device.hca->endpoint();
  const TimeNs now = clock_.now_ns();
  bool busy = device.frames.receive(now, endpoint) != 0;
  if (endpoint.next_deadline() <= now) {
    endpoint.on_timeout(now);
    busy = true;
  }
  // Before completions are shown: a program that answers at once does not overtake the ACK of what
  // it answers. Programs rely on that order, as perftest does with events (ib_send_lat -e).
  busy |= device.frames.transmit(now, endpoint) != 0;
  if (busy || device.touched || device.events_wait || device.hca->next_held_event() <= now) {
    device.touched = false;
    device.events_wait = device.hca->publish_completions(now);
  }
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
    sleeps_until_ns_ = wake_up_time();
    const TimeNs now = monotonic_now_ns();
    TimeNs limit = kNever;
    if (sleeps_until_ns_ != kNever) limit = sleeps_until_ns_ > now ? sleeps_until_ns_ - now : 0;
    token_.give_back();
    timed_out = !wake_set_.wait(limit);
    token_.take();
  }
  store_release(page_.sleeping, 0);
  idle_policy_.on_wake_up(timed_out);
}

bool Engine::anything_to_do() const {
  if (commands_.pending()) return true;
  for (const auto& context : contexts_)
    if (context->doorbells().any_rung()) return true;
  for (const auto& device : devices_)
    if (device->frames.has_work() || device->hca->endpoint().wants_transmit()) return true;
  return false;
}

TimeNs Engine::wake_up_time() const {
  TimeNs until = kNever;
  for (const auto& device : devices_)
    until = std::min(until, device->hca->endpoint().next_deadline());
  if (until != kNever && idle_policy_.block_mode(clock_.now_ns()))
    until = std::max(until, clock_.now_ns() + kCoarseSleepNs);
  for (const auto& device : devices_) {
    until = std::min(until, device->frames.port().next_arrival_ns());
    until = std::min(until, device->hca->next_held_event());
    if (device->events_wait) until = std::min(until, clock_.now_ns() + kEventRetryNs);
  }
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
