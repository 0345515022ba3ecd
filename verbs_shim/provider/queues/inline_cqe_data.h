// Payloads of a few bytes that came inline in their CQEs (verbs_shim/abi/rings.h): they are put
// where they belong when the completion is taken, or earlier, when the memory's registration ends.
// Then a completion that is polled late touches no memory that the program has had back.
#pragma once

#include <cstdint>

#include "verbs_shim/provider/queues/completion_queue.h"

namespace rocemu::provider {

void deliver(const rocemu_cqe& completion);

// A CQ is known to deliver_untaken from its creation until it is destroyed.
void make_known(CompletionQueue& queue);
void forget(CompletionQueue& queue);

// Delivers what has come for [address, address + bytes) in completions that nobody has taken. The
// NIC adds no more: the region has gone. A CQ that is being polled all the while is left out.
void deliver_untaken(DeviceContext& context, uint64_t address, uint64_t bytes);

}  // namespace rocemu::provider
