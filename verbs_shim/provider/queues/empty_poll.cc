#include "verbs_shim/provider/queues/empty_poll.h"

#include <errno.h>
#include <sched.h>

#include "verbs_shim/provider/common/clocks.h"

namespace rocemu::provider {

constinit thread_local PollPacer poll_pacer;

namespace {

void yield(const rocemu_engine_page& engine, bool engine_here) {
  const auto engine_is_awake_here = [&] {
    return engine_here && (load_relaxed(&engine.sleeping) & ROCEMU_ENGINE_SLEEPS) == 0;
  };
  const bool waits = engine_is_awake_here();
  const uint32_t turn = load_relaxed(&engine.turn_behind);
  sched_yield();
  const bool stood_still = turn != 0 && load_relaxed(&engine.turn_behind) == turn;
  poll_pacer.on_yield({.waits = waits, .stood_still = stood_still, .works = engine_is_awake_here()},
                      now_ns(CLOCK_MONOTONIC));
}

void wait(CompletionQueue& queue, const rocemu_engine_page& engine) {
  const auto core = static_cast<uint32_t>(sched_getcpu()) + 1;
  queue.ring.show_poller_core(core);
  const PollPacer::Engine seen = {.here = load_relaxed(&engine.core) == core,
                                  .turn_behind = load_relaxed(&engine.turn_behind),
                                  .crowded = load_relaxed(&engine.crowded) != 0};
  switch (poll_pacer.on_empty(seen, [] { return now_ns(CLOCK_MONOTONIC); })) {
    case PollPacer::Advice::kGoOn:
      break;
    case PollPacer::Advice::kYield:
      yield(engine, seen.here);
      break;
    case PollPacer::Advice::kSleep:
      sleep_in(queue.ring.announce_sleeper(), kLongestSleepNs);
      break;
    case PollPacer::Advice::kNap: {
      uint32_t nobodys = 0;
      sleep_in({&nobodys, nobodys}, kLongestSleepNs);
      break;
    }
  }
}

}  // namespace

int wait_after_empty_poll(CompletionQueue& queue) {
  DeviceContext& context = to_context(queue.verbs.cq.context);
  const DeviceState& state = context.state;
  if (state.yield_when_idle) {
    wait(queue, *state.doorbells.engine);
  } else {
    poll_pacer.on_empty_without_wait();
  }
  if (poll_pacer.look_is_due()) context.look_for_nic();
  return state.connection.lost() ? EIO : 0;
}

}  // namespace rocemu::provider
