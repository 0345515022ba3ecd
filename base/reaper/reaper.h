// Gives back what came from a program on threads that nothing else waits for.
//
// Closing a descriptor can take as long as whoever made it likes: a socket with SO_LINGER waits for
// its peer (socket(7)), a file for the FUSE server's answer to FLUSH, and a control socket for the
// descriptors that still lie in it. Unmapping takes as long as there are pages. Neither may happen
// on the thread that moves data, or on the one that serves all programs.
//
// One thread does it, one after the other. When one takes longer than 20 ms, another thread goes on
// behind it, of kMaxReaperThreads at most: so many closes can hang, and what is behind them stays
// open until one of them returns.
#pragma once

#include <cstddef>

#include "base/unique_fd.h"

namespace rocemu {

inline constexpr unsigned kMaxReaperThreads = 32;

// Any thread may call these; they do not wait. Without memory or threads it is done here and now.
void close_elsewhere(UniqueFd fd) noexcept;
// `then` is told when it is done, by whoever did it.
void unmap_elsewhere(void* address, size_t bytes, void (*then)(size_t bytes) = nullptr) noexcept;

}  // namespace rocemu
