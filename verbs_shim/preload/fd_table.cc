#include "verbs_shim/preload/fd_table.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs_shim/preload/real.h"

namespace rocemu::preload {

std::atomic<FdEntry*> fd_pages[kPages];

namespace {

std::atomic<pid_t> owner_process{0};

FdEntry* make_entry(int fd) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kPages * kEntriesPerPage) return nullptr;
  std::atomic<FdEntry*>& slot = fd_pages[number / kEntriesPerPage];
  FdEntry* page = slot.load(std::memory_order_acquire);
  if (page == nullptr) {
    const size_t bytes = kEntriesPerPage * sizeof(FdEntry);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* fresh = static_cast<FdEntry*>(memory);
    if (slot.compare_exchange_strong(page, fresh, std::memory_order_acq_rel)) {
      page = fresh;
    } else {
      munmap(memory, bytes);
    }
  }
  return &page[number % kEntriesPerPage];
}

void drop(FdEntry* entry) {
  const rocemu_fd_watch* watch = entry->watch.exchange(nullptr);
  void* context = entry->context;
  entry->used.store(false, std::memory_order_release);
  if (watch != nullptr && watch->on_close != nullptr) watch->on_close(context);
}

// A fresh entry for `fd`; one that is there already belongs to a descriptor that went away unseen,
// unless it is for the same file.
FdEntry* claim_entry(int fd, const struct stat& file) {
  FdEntry* entry = make_entry(fd);
  if (entry == nullptr) return nullptr;
  if (entry->used.load(std::memory_order_acquire)) {
    if (entry->file_device == file.st_dev && entry->file_inode == file.st_ino) return entry;
    drop(entry);
  }
  entry->is_cdev = false;
  entry->cdev = 0;
  entry->file_device = file.st_dev;
  entry->file_inode = file.st_ino;
  entry->context = nullptr;
  entry->watch.store(nullptr, std::memory_order_relaxed);
  return entry;
}

void forget_all_in_child() {
  owner_process.store(getpid(), std::memory_order_relaxed);
  for (std::atomic<FdEntry*>& slot : fd_pages) {
    FdEntry* page = slot.load(std::memory_order_relaxed);
    if (page == nullptr) continue;
    for (unsigned i = 0; i < kEntriesPerPage; ++i) {
      page[i].used.store(false, std::memory_order_relaxed);
    }
  }
}

}  // namespace

void note_cdev(int fd, dev_t cdev) {
  struct stat file;
  if (real().fstat(fd, &file) != 0) return;
  FdEntry* entry = claim_entry(fd, file);
  if (entry == nullptr) return;
  entry->is_cdev = true;
  entry->cdev = cdev;
  entry->used.store(true, std::memory_order_release);
}

bool is_same_file(int fd, const FdEntry& entry) {
  struct stat file;
  return real().fstat(fd, &file) == 0 && file.st_dev == entry.file_device &&
         file.st_ino == entry.file_inode;
}

FdEntry* check_entry(int fd, FdEntry* entry) {
  if (is_same_file(fd, *entry)) return entry;
  drop(entry);
  return nullptr;
}

void before_close(int fd, FdEntry* entry) {
  if (!in_owner_process()) return;
  const int saved = errno;
  if (check_entry(fd, entry) != nullptr) drop(entry);
  errno = saved;
}

void watch_forks() {
  owner_process.store(getpid(), std::memory_order_relaxed);
  pthread_atfork(nullptr, nullptr, forget_all_in_child);
}

bool in_owner_process() { return getpid() == owner_process.load(std::memory_order_relaxed); }

}  // namespace rocemu::preload

using namespace rocemu::preload;

ROCEMU_EXPORT int rocemu_preload_watch_fd_v4(int fd, const rocemu_fd_watch* watch, void* context) {
  struct stat file;
  if (real().fstat(fd, &file) != 0) return EBADF;
  if (static_cast<unsigned>(fd) >= kPages * kEntriesPerPage) return EBADF;
  FdEntry* entry = claim_entry(fd, file);
  if (entry == nullptr) return ENOMEM;
  entry->context = context;
  entry->watch.store(watch, std::memory_order_release);
  entry->used.store(true, std::memory_order_release);
  return 0;
}

ROCEMU_EXPORT void rocemu_preload_unwatch_fd_v4(int fd) {
  FdEntry* entry = find_entry(fd);
  if (entry == nullptr) return;
  entry->watch.store(nullptr, std::memory_order_relaxed);
  if (!entry->is_cdev) entry->used.store(false, std::memory_order_release);
}
