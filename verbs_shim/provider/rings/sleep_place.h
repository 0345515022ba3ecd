// Sleeping until the NIC shows more: where, and how.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace rocemu::provider {

// A word that the NIC changes, and its value when there was nothing.
struct SleepPlace {
  uint32_t* word;
  uint32_t seen;
};

// Sleeps while `place` is as it was seen, until the NIC wakes this thread or `longest_ns`, below a
// second, are over. The word's memory may be unmapped meanwhile: then the call fails, or time ends
// it. errno stays as it was.
inline void sleep_in(const SleepPlace& place, long longest_ns) {
  const int error = errno;
  const timespec longest = {0, longest_ns};
  syscall(SYS_futex, place.word, FUTEX_WAIT, place.seen, &longest, nullptr, 0);
  errno = error;
}

}  // namespace rocemu::provider
