// Functions that read and write memory which a program can write at the same time. Everything read
// here is hostile: it is copied to private memory once, and only the copy is checked and used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rocemu::daemon {

inline uint32_t load_acquire(const uint32_t& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

inline void store_release(uint32_t& word, uint32_t value) noexcept {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

// The sequentially consistent ones are for the places where each side writes one word and then
// reads the other's, and one of the two has to see what the other wrote.
inline uint32_t load_seq_cst(const uint32_t& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}

inline void store_seq_cst(uint32_t& word, uint32_t value) noexcept {
  __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
}

// Copies out exactly once: the compiler may not go back to the shared original afterwards, where a
// second look could find another value than the one that was checked.
template <class T>
inline void copy_out(T& copy, const std::byte* shared) noexcept {
  std::memcpy(&copy, shared, sizeof(T));
  asm volatile("" : : "r"(&copy) : "memory");
}

}  // namespace rocemu::daemon
