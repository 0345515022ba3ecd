// Loads and stores of the words that a program and the NIC share.
#pragma once

#include <cstdint>

namespace rocemu::provider {

inline uint32_t load_acquire(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
// For words that only this side writes, for hints (stamps, cores), whose reader can do with an
// older value, and behind full_fence(), where the order is the fence's.
inline uint32_t load_relaxed(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
inline void store_release(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
inline void full_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace rocemu::provider
