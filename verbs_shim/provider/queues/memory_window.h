// A memory window as the provider knows it. A program may write to the fields of ibv_mw, its key
// among them, without changing the window.
#pragma once

#include <infiniband/verbs.h>

namespace rocemu::provider {

struct MemoryWindow {
  ibv_mw mw;
  uint32_t key;  // as the NIC gave it; later the last one that ibv_bind_mw chose
};

inline MemoryWindow& to_window(ibv_mw* mw) { return *reinterpret_cast<MemoryWindow*>(mw); }

// The consumer owns the low 8 bits of a key (IBTA vol 1, 10.6.7.2.6): the window's key with those
// of `wanted`.
inline uint32_t window_key(const MemoryWindow& window, uint32_t wanted) {
  return (window.key & ~0xffu) | (wanted & 0xffu);
}

}  // namespace rocemu::provider
