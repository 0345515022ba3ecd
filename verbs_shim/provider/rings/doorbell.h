// Ringing a QP's doorbell, as verbs_shim/abi/rings.h has it.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/provider/rings/shared_index.h"

namespace rocemu::provider {

struct Doorbells {
  rocemu_doorbell_page* page = nullptr;
  const rocemu_engine_page* engine = nullptr;
  int wake_fd = -1;  // an eventfd
  uint32_t slots = 0;

  // The producer index has been published before. Safe from any thread. Answers the engine's state
  // (enum rocemu_engine_state): 0, or there is something to do.
  uint32_t ring(uint32_t slot) const {
    rocemu_doorbell_group& group = page->groups[slot / ROCEMU_DOORBELL_GROUP_SLOTS];
    const uint32_t word = slot % ROCEMU_DOORBELL_GROUP_SLOTS / 64;
    __atomic_fetch_or(&group.words[word], uint64_t{1} << (slot % 64), __ATOMIC_RELEASE);
    __atomic_fetch_or(&group.summary, uint64_t{1} << word, __ATOMIC_RELEASE);
    full_fence();
    return load_relaxed(&engine->sleeping);
  }

  void wake() const {
    const uint64_t one = 1;
    // Fails only when the count is full, and then the NIC is being woken already.
    [[maybe_unused]] const ssize_t written = write(wake_fd, &one, sizeof(one));
  }
};

}  // namespace rocemu::provider
