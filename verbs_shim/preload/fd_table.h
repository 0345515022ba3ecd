// The file descriptors that are not what the kernel takes them for: device descriptors, /dev/null
// underneath, and descriptors that the provider watches.
//
// Looked up in every read(), write() and close() of the program, so the table is two loads deep and
// takes no lock: an entry is written by the thread that opened the descriptor, and is used by those
// that the program handed the number to. Pages of it are mapped when the first descriptor of their
// range is noted, and stay.
//
// A descriptor can go away unseen (dup2 over it, close_range). So each entry holds the identity of
// its file, and an entry whose descriptor is another file by now is dropped when it is met.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "verbs_shim/abi/watch.h"

namespace rocemu::preload {

struct FdEntry {
  std::atomic<bool> used;
  bool is_cdev;
  dev_t cdev;  // device number that fstat() is to report, when is_cdev
  dev_t file_device;
  ino_t file_inode;
  std::atomic<const rocemu_fd_watch*> watch;
  void* context;
};

inline constexpr unsigned kEntriesPerPage = 512;
inline constexpr unsigned kPages = 2048;  // descriptors up to 1048576, the kernel's default bound

extern std::atomic<FdEntry*> fd_pages[kPages];

// The entry of `fd`, or null when there is nothing to say about it.
inline FdEntry* find_entry(int fd) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kPages * kEntriesPerPage) return nullptr;
  FdEntry* page = fd_pages[number / kEntriesPerPage].load(std::memory_order_acquire);
  if (page == nullptr) return nullptr;
  FdEntry* entry = &page[number % kEntriesPerPage];
  return entry->used.load(std::memory_order_acquire) ? entry : nullptr;
}

// Notes that `fd` is to look like the character device `cdev`. Without memory for it, it doesn't.
void note_cdev(int fd, dev_t cdev);

// Whether the descriptor still is the file that the entry was noted for.
bool is_same_file(int fd, const FdEntry& entry);

// The entry, if it is; else drops it and says null.
FdEntry* check_entry(int fd, FdEntry* entry);

// The caller of close() calls it before `fd`, which has an entry, is closed.
void before_close(int fd, FdEntry* entry);

// Makes the table be emptied in forked children, where the descriptors are the parent's business.
// In a vfork child, which shares the parent's memory, the table is left alone.
void watch_forks();
bool in_owner_process();

}  // namespace rocemu::preload
