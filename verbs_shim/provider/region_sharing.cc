// Making registered memory shared: the part of region_file.h that changes the program's memory.
//
// What the program sees afterwards is what it saw before, but for two things that are mended here
// and in the preload library: a child of fork(2) would see what its parent writes later, so it gets
// a copy at once; and MADV_DONTNEED would not clear (verbs_shim/preload/interpose_memory.cc).
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/exchange/region_mappings.h"
#include "verbs_shim/provider/mutex.h"
#include "verbs_shim/provider/new_object.h"
#include "verbs_shim/provider/region_file.h"

namespace rocemu::provider {
namespace {

struct Unshared {
  const void* owner;
  uintptr_t from;
  uintptr_t to;
  Unshared* next;
};

Mutex unshared_lock;
Unshared* unshared = nullptr;

bool overlaps_unshared(uintptr_t from, uintptr_t to) {
  Lock lock(unshared_lock);
  for (const Unshared* range = unshared; range != nullptr; range = range->next) {
    if (range->from < to && from < range->to) return true;
  }
  return false;
}

// The thread that forks waits until the child has copied.
Mutex fork_lock;
int fork_pipe[2] = {-1, -1};

void before_fork() {
  fork_lock.lock();
  if (pipe2(fork_pipe, O_CLOEXEC) != 0) fork_pipe[0] = fork_pipe[1] = -1;
}

void in_parent() {
  if (fork_pipe[0] >= 0) {
    close(fork_pipe[1]);
    char byte;
    while (read(fork_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    close(fork_pipe[0]);
  }
  fork_lock.unlock();
}

// Without memory for the copy the child gets none of it, as with MADV_DONTFORK.
bool make_private(void*, const exchange::RegionPart& part) {
  auto* const there = reinterpret_cast<void*>(part.from);
  const size_t bytes = part.to - part.from;
  void* const copy =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED || mprotect(there, bytes, PROT_READ) != 0) {
    munmap(there, bytes);
    return true;
  }
  memcpy(copy, there, bytes);
  mprotect(copy, bytes, part.protection);
  mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, there);
  return true;
}

void in_child() {
  exchange::RegionWalk walk = {0, UINTPTR_MAX, &make_private, nullptr};
  exchange::visit_regions(walk);
  if (fork_pipe[0] >= 0) {
    close(fork_pipe[0]);
    close(fork_pipe[1]);
  }
  fork_lock.unlock();
}

bool watch_forks() {
  static const int error = pthread_atfork(&before_fork, &in_parent, &in_child);
  return error == 0;
}

// Of which only what is used takes memory: mremap(2), by which realloc lets memory grow, is not to
// come to the file's end.
constexpr off_t kFileBytes = off_t{1} << 40;

bool may_make_files() {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

bool write_all(int fd, uintptr_t from, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t written = pwrite(fd, reinterpret_cast<const void*>(from + done), bytes - done,
                                   static_cast<off_t>(done));
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

// No signal handler writes to the memory while it is copied.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

bool replace(int fd, uintptr_t from, size_t bytes) {
  SignalsHeld held;
  return write_all(fd, from, bytes) &&
         mmap(reinterpret_cast<void*>(from), bytes, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) != MAP_FAILED;
}

bool is_plain_memory(const Mapping& mapping) {
  return !mapping.shared && mapping.readable && mapping.writable && mapping.inode == 0 &&
         (mapping.name[0] == '\0' || strcmp(mapping.name, "[heap]") == 0 ||
          strncmp(mapping.name, "[anon:", 6) == 0);
}

}  // namespace

bool wants_shared_memory() {
  static const bool wanted = [] {
    const char* value = secure_getenv(ROCEMU_ENV_SHARE_MEMORY);
    return value != nullptr && strcmp(value, "1") == 0;
  }();
  return wanted;
}

int make_region_file(uintptr_t address, size_t bytes, Mapping& mapping) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = address / page * page;
  const uintptr_t to = (address + bytes + page - 1) / page * page;
  if (!is_plain_memory(mapping) || from < mapping.from || to > mapping.to) return -1;
  if (!__libc_single_threaded || overlaps_unshared(from, to) || !watch_forks()) return -1;
  const int errno_before = errno;
  const int fd = may_make_files() ? memfd_create(ROCEMU_REGION_FILE, MFD_CLOEXEC) : -1;
  const bool done = fd >= 0 && ftruncate(fd, kFileBytes) == 0 && replace(fd, from, to - from);
  errno = errno_before;
  if (!done) {
    if (fd >= 0) close(fd);
    return -1;
  }
  mapping = {};
  mapping.from = from;
  mapping.to = to;
  mapping.readable = mapping.writable = mapping.shared = true;
  return fd;
}

void note_unshared(const void* owner, uintptr_t address, size_t bytes) {
  auto* range = new_object<Unshared>();
  if (range == nullptr) return;
  range->owner = owner;
  range->from = address;
  range->to = bytes > UINTPTR_MAX - address ? UINTPTR_MAX : address + bytes;
  Lock lock(unshared_lock);
  range->next = unshared;
  unshared = range;
}

void forget_unshared(const void* owner) {
  Lock lock(unshared_lock);
  for (Unshared** link = &unshared; *link != nullptr; link = &(*link)->next) {
    if ((*link)->owner != owner) continue;
    Unshared* range = *link;
    *link = range->next;
    delete_object(range);
    return;
  }
}

}  // namespace rocemu::provider
