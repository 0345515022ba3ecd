// Access to memory that another process may take away at any moment: a mapping of a file that the
// other one can cut short, which gives SIGBUS here (mmap(2), ERRORS and SIGBUS).
#pragma once

#include <atomic>
#include <csetjmp>
#include <cstddef>

namespace rocemu::dma {

// Makes a SIGBUS within guarded() end that access and nothing else; one from anywhere else still
// ends the process. For the whole process, before the first guarded access; threads that make such
// must not block the signal, as the kernel then ends the process.
void install_access_guard();

namespace guard {

// ThreadSanitizer has its own handler before ours, which blocks all signals meanwhile: the jump out
// of it has to put the mask back, which costs a call of the kernel.
#ifdef __SANITIZE_THREAD__
inline constexpr int kSavesSignalMask = 1;
#else
inline constexpr int kSavesSignalMask = 0;
#endif

struct Place {
  sigjmp_buf back_to;
  volatile bool inside = false;
};
extern thread_local Place place;

// What programs do with their memory at the same time is theirs: while this lives, ThreadSanitizer
// does not look at what this thread reads and writes, the NIC's own end of a copy included.
#ifdef __SANITIZE_THREAD__
class Unwatched {
 public:
  Unwatched() noexcept;
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};
#else
struct Unwatched {};
#endif

}  // namespace guard

// access(), which must hold nothing that has to be released and not call guarded() itself. False
// when the memory had gone; part of the access may have happened.
template <class Access>
[[gnu::noinline]] bool guarded(Access access) noexcept {
  [[maybe_unused]] const guard::Unwatched unwatched;
  if (sigsetjmp(guard::place.back_to, guard::kSavesSignalMask) != 0) return false;
  guard::place.inside = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  guard::place.inside = false;
  return true;
}

// False when some of it has gone. A byte of each page is read.
bool guarded_look(const std::byte* mapped, size_t length_bytes) noexcept;
bool guarded_read(std::byte* to, const std::byte* mapped, size_t length_bytes) noexcept;
// The last byte is written last: programs wait for it to see that the others are there, as devices
// write them in order.
bool guarded_write(std::byte* mapped, const std::byte* from, size_t length_bytes) noexcept;

}  // namespace rocemu::dma
