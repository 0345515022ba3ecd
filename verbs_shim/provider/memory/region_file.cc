#include "verbs_shim/provider/memory/region_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "verbs_shim/exchange/c_library.h"

namespace rocemu::provider {
namespace {

// Among more open files none is looked for: that would take longer than it saves.
constexpr unsigned kMaxDescriptors = 4096;

bool is_file_of(int fd, const Mapping& mapping) {
  struct stat file;
  return exchange::file_status(fd, &file) == 0 && S_ISREG(file.st_mode) &&
         file.st_dev == mapping.device && file.st_ino == mapping.inode;
}

bool is_in_memory(int fd) {
  struct statfs filesystem;
  return fstatfs(fd, &filesystem) == 0 &&
         (filesystem.f_type == TMPFS_MAGIC || filesystem.f_type == HUGETLBFS_MAGIC);
}

struct OpenFile {
  int usable = -1;       // a descriptor that reads and writes
  bool is_open = false;  // in whatever way
};

// Finds the mapping's file among those that the program has open.
OpenFile find_open(const Mapping& mapping) {
  OpenFile found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  unsigned seen = 0;
  while (const dirent* entry = found.usable < 0 ? readdir(directory) : nullptr) {
    char* end;
    const auto fd = static_cast<int>(strtol(entry->d_name, &end, 10));
    if (end == entry->d_name || fd == dirfd(directory)) continue;
    if (++seen > kMaxDescriptors) {
      found.is_open = true;  // perhaps
      break;
    }
    if (!is_file_of(fd, mapping)) continue;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0) continue;
    found.is_open = true;
    if ((flags & O_ACCMODE) == O_RDWR) found.usable = fd;
  }
  closedir(directory);
  return found;
}

// O_PATH opens nothing that could be noticed, so what the name stands for now is looked at first.
class Name {
 public:
  explicit Name(const char* path) : fd_(open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW)) {}
  ~Name() {
    if (fd_ >= 0) close(fd_);
  }
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;

  bool is_of(const Mapping& mapping) const {
    return fd_ >= 0 && is_file_of(fd_, mapping) && is_in_memory(fd_);
  }
  int open_file() const {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd_);
    return open(path, O_RDWR | O_CLOEXEC);
  }

 private:
  int fd_;
};

bool starts_with(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

bool ends_with(const char* text, const char* end) {
  const size_t length = strlen(text);
  return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

// Memory of mmap(2) and shmget(2), which no descriptor is of.
bool is_shared_without_file(const Mapping& mapping) {
  return starts_with(mapping.name, "/dev/zero (") || starts_with(mapping.name, "/SYSV");
}

RegionFile find(const Mapping& mapping) {
  if (is_shared_without_file(mapping)) return {};
  if (ends_with(mapping.name, " (deleted)")) return RegionFile::borrow(find_open(mapping).usable);
  const Name name(mapping.name);
  if (!name.is_of(mapping)) return {};
  const OpenFile found = find_open(mapping);
  if (found.is_open) return RegionFile::borrow(found.usable);
  return RegionFile::own(name.open_file());
}

}  // namespace

RegionFile::~RegionFile() {
  if (owned_ && fd_ >= 0) close(fd_);
}

RegionFile find_region_file(const Mapping& mapping) {
  if (!mapping.shared || !mapping.writable || mapping.inode == 0 || mapping.name[0] != '/')
    return {};
  const int errno_before = errno;
  RegionFile file = find(mapping);
  errno = errno_before;
  return file;
}

}  // namespace rocemu::provider
