// Registered memory that is a file's in memory (tmpfs, memfd, hugetlbfs) and mapped shared can be
// mapped by the NIC as well, which then needs no system call to move its bytes. And on the
// program's wish, other memory is made such (ROCEMU_SHARE_MEMORY=1).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "verbs_shim/provider/memory/mapped_range.h"

namespace rocemu::provider {

// A descriptor, open for reading and writing.
class RegionFile {
 public:
  RegionFile() = default;
  RegionFile(RegionFile&& other) noexcept : fd_(other.fd_), owned_(other.owned_) { other.fd_ = -1; }
  RegionFile& operator=(RegionFile&&) = delete;
  ~RegionFile();

  static RegionFile own(int fd) { return RegionFile(fd, true); }
  // The program's, to be left open.
  static RegionFile borrow(int fd) { return RegionFile(fd, false); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  RegionFile(int fd, bool owned) : fd_(fd), owned_(owned) {}

  int fd_ = -1;
  bool owned_ = false;
};

// The file that `mapping` is of. None when it is no file that a NIC maps, or cannot be opened here:
// without a name, nobody having it open. Closes no descriptor of a file that the program has open,
// since it could lose locks by that (fcntl(2), F_SETLK).
RegionFile find_region_file(const Mapping& mapping);

// True when the program wishes for what make_region_file() does.
bool wants_shared_memory();
// Puts a memfd with the same content in the place of the pages of [address, address + bytes), which
// `mapping` says what they are, and sets `mapping` to what is there then. None, and all is for the
// program as it was, for anything but private memory without a file that one mapping has all of,
// and while other threads or the NIC may be writing to it.
RegionFile make_region_file(uintptr_t address, size_t bytes, Mapping& mapping);

// Ranges that the NIC reaches in another way than by a file: they are not moved. `owner` is any
// value that names the range.
void note_unshared(const void* owner, uintptr_t address, size_t bytes);
void forget_unshared(const void* owner);

}  // namespace rocemu::provider
