// Making registered memory shared: the part of region_file.h that changes the program's memory.
//
// Afterwards the program sees its memory as before, but for two things that are mended here and in
// the preload library: a child of fork(2) would see what its parent writes later, so it gets a copy
// at once; and MADV_DONTNEED would not clear (verbs_shim/preload/interpose_memory.cc).
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/exchange/c_library.h"
#include "verbs_shim/exchange/region_mappings.h"
#include "verbs_shim/provider/common/complain.h"
#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/memory/region_file.h"

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

// No signal handler of this thread runs meanwhile.
class SignalsHeld {
 public:
  void hold() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  void release() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// The thread that forks waits until the child has copied, without handling signals: a handler may
// fork as well.
struct Fork {
  Mutex lock;
  SignalsHeld signals;
  int pipe[2];
};
Fork current_fork;

void before_fork() {
  SignalsHeld signals;
  signals.hold();
  current_fork.lock.lock();
  current_fork.signals = signals;
  if (pipe2(current_fork.pipe, O_CLOEXEC) != 0) current_fork.pipe[0] = current_fork.pipe[1] = -1;
}

void after_fork() {
  SignalsHeld signals = current_fork.signals;
  current_fork.lock.unlock();
  signals.release();
}

void in_parent() {
  if (current_fork.pipe[0] >= 0) {
    close(current_fork.pipe[1]);
    char byte;
    while (read(current_fork.pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    close(current_fork.pipe[0]);
  }
  after_fork();
}

// A child gets none of it when there is no memory for the copy, as with MADV_DONTFORK.
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
  if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, there) == MAP_FAILED) {
    munmap(there, bytes);
    munmap(copy, bytes);
  }
  return true;
}

bool note_one(void* is_there, const exchange::RegionPart&) {
  *static_cast<bool*>(is_there) = true;
  return false;
}

// False where what is to be copied can't be found out, or the parent does not wait for it.
bool copy_regions() {
  const bool parent_waits = current_fork.pipe[0] >= 0;
  if (parent_waits) close(current_fork.pipe[0]);  // /proc/self/maps needs one
  bool is_there = false;
  exchange::RegionWalk walk = {0, UINTPTR_MAX, parent_waits ? &make_private : &note_one, &is_there};
  return exchange::visit_regions(walk) == 0 && !is_there;
}

// A child without a copy would write to its parent's memory.
void in_child() {
  if (!copy_regions()) {
    complain("fork: the child cannot be given memory of its own (no descriptor is left); it ends");
    _exit(EX_OSERR);
  }
  if (current_fork.pipe[1] >= 0) close(current_fork.pipe[1]);
  after_fork();
}

bool watch_forks() {
  static const int error = pthread_atfork(&before_fork, &in_parent, &in_child);
  return error == 0;
}

// Each may need two mappings more, of which a process has 65,530 (vm.max_map_count).
constexpr unsigned kMaxFiles = 4096;
unsigned made_files = 0;

// Only what is used of the file takes memory: mremap(2), by which realloc lets memory grow, is not
// to come to the file's end.
constexpr off_t kFileBytes = off_t{1} << 40;

bool may_make_files() {
  rlimit limit;
  return made_files < kMaxFiles && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur == RLIM_INFINITY;
}

// So much is moved at a time, that the memory is there twice only in part.
constexpr size_t kPieceBytes = 1 << 21;

bool is_zero(const char* bytes, size_t count) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

// Pages of zeros, as those that were never touched, stay holes.
bool write_piece(int fd, const char* from, size_t bytes, off_t offset, size_t page) {
  for (size_t at = 0; at < bytes;) {
    size_t run = 0;
    while (at + run < bytes && !is_zero(from + at + run, page)) run += page;
    if (run > 0 &&
        pwrite(fd, from + at, run, offset + static_cast<off_t>(at)) != static_cast<ssize_t>(run)) {
      return false;
    }
    at += run > 0 ? run : page;
  }
  return true;
}

// A part that has been moved when the next one fails stays so, which is as good.
bool move_to_file(int fd, uintptr_t from, size_t bytes, size_t page) {
  for (size_t done = 0; done < bytes;) {
    const size_t piece = bytes - done < kPieceBytes ? bytes - done : kPieceBytes;
    const auto offset = static_cast<off_t>(done);
    auto* const at = reinterpret_cast<char*>(from + done);
    if (!write_piece(fd, at, piece, offset, page) ||
        mmap(at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED) {
      return false;
    }
    done += piece;
  }
  return true;
}

// Pages of the heap hold what malloc keeps of other memory as well, which other threads may change
// while a child copies: only such that the region has whole.
bool is_plain_memory(const Mapping& mapping, bool whole_pages) {
  if (mapping.shared || mapping.executable || !mapping.readable || !mapping.writable ||
      mapping.inode != 0) {
    return false;
  }
  return mapping.name[0] == '\0' || strncmp(mapping.name, "[anon:", 6) == 0 ||
         (whole_pages && strcmp(mapping.name, "[heap]") == 0);
}

int make_file(uintptr_t from, size_t bytes, size_t page) {
  const int fd = may_make_files() ? memfd_create(ROCEMU_REGION_FILE, MFD_CLOEXEC) : -1;
  if (fd < 0) return -1;
  SignalsHeld signals;
  signals.hold();
  const bool done = ftruncate(fd, kFileBytes) == 0 && move_to_file(fd, from, bytes, page);
  signals.release();
  ++made_files;
  if (done) return fd;
  close(fd);
  return -1;
}

}  // namespace

bool wants_shared_memory() {
  static const bool wanted = [] {
    const char* value = secure_getenv(ROCEMU_ENV_SHARE_MEMORY);
    return value != nullptr && strcmp(value, "1") == 0;
  }();
  return wanted;
}

RegionFile make_region_file(uintptr_t address, size_t bytes, Mapping& mapping) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = address / page * page;
  const uintptr_t to = (address + bytes + page - 1) / page * page;
  const bool whole_pages = from == address && to == address + bytes;
  if (!is_plain_memory(mapping, whole_pages) || from < mapping.from || to > mapping.to) return {};
  if (!exchange::has_one_thread() || overlaps_unshared(from, to) || !watch_forks()) return {};
  const int errno_before = errno;
  const int fd = make_file(from, to - from, page);
  errno = errno_before;
  struct stat file;
  if (fd < 0 || exchange::file_status(fd, &file) != 0) return RegionFile::own(fd);
  mapping.from = from;
  mapping.to = to;
  mapping.shared = true;
  mapping.offset_bytes = 0;
  mapping.device = file.st_dev;
  mapping.inode = file.st_ino;
  return RegionFile::own(fd);
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
