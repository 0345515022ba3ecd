// The wait after a poll that has found nothing. The poll may yield, and it may sleep, for at most
// kLongestSleepNs and what the system adds to it (the thread's timer slack, 50 us where nobody
// changed it: prctl(2), PR_SET_TIMERSLACK): ibv_poll_cq is no call that waits for a completion, and
// a program may have something else to do that nobody wakes it for.
#pragma once

#include "verbs_shim/provider/queues/completion_queue.h"
#include "verbs_shim/provider/rings/poll_pacer.h"

namespace rocemu::provider {

inline constexpr long kLongestSleepNs = 50'000;

// The pacer of this thread's polls.
extern constinit thread_local PollPacer poll_pacer;

// The caller holds no lock. EIO when the NIC is gone and nothing more will come, else 0.
int wait_after_empty_poll(CompletionQueue& queue);

}  // namespace rocemu::provider
