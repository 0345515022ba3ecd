// The functions by which programs and their allocators give memory back. Each tells the checker
// when that memory is watched: free, munmap and shmdt before the call is handed through, since
// another thread may have the addresses when it is over; the others after it, when it is known
// whether anything has gone.
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_shim/abi/memory_watch.h"
#include "verbs_shim/memory_watch/ranges.h"
#include "verbs_shim/memory_watch/shared_mapping.h"

#define ROCEMU_EXPORT extern "C" __attribute__((visibility("default")))

// The C library's own, for the time in which the functions behind this library are looked for.
extern "C" void* __libc_realloc(void* memory, size_t bytes);

namespace rocemu::memory_watch {
namespace {

constinit Ranges ranges;
std::atomic<rocemu_memory_going> tell{nullptr};
// This thread is telling, or finding functions: what it frees meanwhile is not the program's.
__attribute__((tls_model("initial-exec"))) thread_local bool is_busy = false;

struct Next {
  void (*free)(void*);
  void* (*realloc)(void*, size_t);
  size_t (*malloc_usable_size)(void*);
  int (*munmap)(void*, size_t);
  void* (*mremap)(void*, size_t, size_t, int, ...);
  void* (*mmap)(void*, size_t, int, int, int, off_t);
  int (*madvise)(void*, size_t, int);
  int (*mprotect)(void*, size_t, int);
  int (*shmdt)(const void*);
};
Next functions;
std::atomic<bool> is_ready{false};

template <typename Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Two threads may both come here before main(): they write the same values.
void initialise() {
  is_busy = true;
  find(functions.free, "free");
  find(functions.realloc, "realloc");
  find(functions.malloc_usable_size, "malloc_usable_size");
  find(functions.munmap, "munmap");
  find(functions.mremap, "mremap");
  find(functions.mmap, "mmap");
  find(functions.madvise, "madvise");
  find(functions.mprotect, "mprotect");
  find(functions.shmdt, "shmdt");
  is_busy = false;
  is_ready.store(true, std::memory_order_release);
}

// Null while the functions are looked for by this thread.
const Next* next() {
  if (is_ready.load(std::memory_order_acquire)) [[likely]]
    return &functions;
  if (is_busy) return nullptr;
  initialise();
  return &functions;
}

struct Caller {
  const void* return_address;
  const void* frame;
};

// The provider puts other memory in place of what it shares with the NIC, with the same content.
bool is_ours(const Caller& caller) {
  Dl_info info;
  return dladdr(caller.return_address, &info) != 0 && info.dli_fname != nullptr &&
         strstr(info.dli_fname, "/librocemu-") != nullptr;
}

__attribute__((noinline)) void say(const Caller& caller, const void* address, size_t bytes,
                                   const char* how) {
  const rocemu_memory_going going = tell.load(std::memory_order_acquire);
  if (going == nullptr || is_busy || is_ours(caller)) return;
  is_busy = true;
  const rocemu_check_call at = {how, caller.return_address, caller.frame};
  going(&at, address, bytes, how);
  is_busy = false;
}

bool is_watched(const void* address, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(address);
  return bytes <= UINTPTR_MAX - from && ranges.meets(from, from + bytes);
}

void set_tell(rocemu_memory_going going) { tell.store(going, std::memory_order_release); }
void add(const void* address, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(address);
  if (bytes <= UINTPTR_MAX - from) ranges.add(from, from + bytes);
}
void remove(const void* address, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(address);
  if (bytes <= UINTPTR_MAX - from) ranges.remove(from, from + bytes);
}

// A child frees copies of its own: the requests, and the memory that they name, are its parent's.
void in_child() {
  ranges.after_fork();
  tell.store(nullptr, std::memory_order_relaxed);
  is_busy = false;
}

__attribute__((constructor)) void on_load() {
  next();
  pthread_atfork(nullptr, nullptr, in_child);
}

void say_if_watched(const Caller& caller, const void* address, size_t bytes, const char* how) {
  if (is_watched(address, bytes)) say(caller, address, bytes, how);
}

// A mapping over another one takes its place.
void* map(const Caller& caller, void* address, size_t bytes, int protection, int flags, int fd,
          off64_t offset) {
  const Next* real = next();
  void* const mapped = real == nullptr
                           ? reinterpret_cast<void*>(
                                 syscall(SYS_mmap, address, bytes, protection, flags, fd, offset))
                           : real->mmap(address, bytes, protection, flags, fd, offset);
  if ((flags & MAP_FIXED) != 0 && mapped != MAP_FAILED)
    say_if_watched(caller, address, bytes, "mmap");
  return mapped;
}

}  // namespace
}  // namespace rocemu::memory_watch

using namespace rocemu::memory_watch;

#define CALLER \
  Caller { __builtin_return_address(0), __builtin_frame_address(0) }

ROCEMU_EXPORT const rocemu_memory_watch* rocemu_memory_watch_v1() {
  static constexpr rocemu_memory_watch kWatch = {set_tell, add, remove};
  return &kWatch;
}

ROCEMU_EXPORT void free(void* memory) noexcept {
  const Next* real = next();
  // It stays: a few words of dlsym()'s, which may be of an allocator that has not been found yet,
  // as a sanitizer's.
  if (real == nullptr) return;
  if (memory != nullptr && ranges.may_meet(reinterpret_cast<uintptr_t>(memory))) {
    const size_t bytes = real->malloc_usable_size(memory);
    if (is_watched(memory, bytes)) say(CALLER, memory, bytes, "free");
  }
  real->free(memory);
}

// The old memory goes only if the block moves, which is known afterwards.
ROCEMU_EXPORT void* realloc(void* memory, size_t bytes) noexcept {
  const Next* real = next();
  if (real == nullptr) return __libc_realloc(memory, bytes);
  size_t before = 0;
  if (memory != nullptr && ranges.may_meet(reinterpret_cast<uintptr_t>(memory)))
    before = real->malloc_usable_size(memory);
  const auto old = reinterpret_cast<uintptr_t>(memory);
  void* const moved = real->realloc(memory, bytes);
  // realloc(memory, 0) of glibc is free().
  const bool has_moved =
      (moved != nullptr || bytes == 0) && reinterpret_cast<uintptr_t>(moved) != old;
  if (before != 0 && has_moved && is_watched(reinterpret_cast<void*>(old), before))
    say(CALLER, reinterpret_cast<void*>(old), before, "realloc");
  return moved;
}

ROCEMU_EXPORT int munmap(void* address, size_t bytes) noexcept {
  const Next* real = next();
  if (real == nullptr) return static_cast<int>(syscall(SYS_munmap, address, bytes));
  if (is_watched(address, bytes)) say(CALLER, address, bytes, "munmap");
  return real->munmap(address, bytes);
}

ROCEMU_EXPORT void* mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  const Next* real = next();
  void* const moved =
      real == nullptr
          ? reinterpret_cast<void*>(syscall(SYS_mremap, address, bytes, new_bytes, flags, to))
          : real->mremap(address, bytes, new_bytes, flags, to);
  if (moved == MAP_FAILED) return moved;
  // Of what stays in its place the end that was cut off has gone.
  const size_t kept = moved != address ? 0 : new_bytes < bytes ? new_bytes : bytes;
  say_if_watched(CALLER, static_cast<char*>(address) + kept, bytes - kept, "mremap");
  if (to != nullptr) say_if_watched(CALLER, to, new_bytes, "mremap");
  return moved;
}

ROCEMU_EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int fd,
                         off_t offset) noexcept {
  return map(CALLER, address, bytes, protection, flags, fd, offset);
}

ROCEMU_EXPORT void* mmap64(void* address, size_t bytes, int protection, int flags, int fd,
                           off64_t offset) noexcept {
  return map(CALLER, address, bytes, protection, flags, fd, offset);
}

ROCEMU_EXPORT int madvise(void* address, size_t bytes, int advice) noexcept {
  const Next* real = next();
  if (real == nullptr) return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
  const int status = real->madvise(address, bytes, advice);
  if (status != 0) return status;
  // Of shared memory MADV_DONTNEED takes away the mapping of pages, which stay those that they are.
  const bool lets_go = advice == MADV_FREE || advice == MADV_REMOVE ||
                       (advice == MADV_DONTNEED && is_watched(address, bytes) &&
                        !is_shared(reinterpret_cast<uintptr_t>(address)));
  if (lets_go) say_if_watched(CALLER, address, bytes, "madvise");
  return status;
}

ROCEMU_EXPORT int mprotect(void* address, size_t bytes, int protection) noexcept {
  const Next* real = next();
  if (real == nullptr) return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
  const int status = real->mprotect(address, bytes, protection);
  if (status == 0 && (protection & PROT_READ) == 0)
    say_if_watched(CALLER, address, bytes, "mprotect");
  return status;
}

// Only the kernel knows how long the segment is: its first byte stands for all of it.
ROCEMU_EXPORT int shmdt(const void* address) noexcept {
  const Next* real = next();
  if (real == nullptr) return static_cast<int>(syscall(SYS_shmdt, address));
  if (is_watched(address, 1)) say(CALLER, address, 1, "shmdt");
  return real->shmdt(address);
}
