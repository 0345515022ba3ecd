#include "verbs_shim/provider/region_file.h"

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

namespace rocemu::provider {
namespace {

bool is_file_of(int fd, const Mapping& mapping) {
  struct stat file;
  struct statfs filesystem;
  return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_dev == mapping.device &&
         file.st_ino == mapping.inode && fstatfs(fd, &filesystem) == 0 &&
         (filesystem.f_type == TMPFS_MAGIC || filesystem.f_type == HUGETLBFS_MAGIC);
}

int reopen(int path_fd) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
  return open(path, O_RDWR | O_CLOEXEC);
}

// By its name, which may be another file's by now, so it is looked at before it is opened.
int open_by_name(const Mapping& mapping) {
  if (mapping.name[0] != '/') return -1;
  const int path_fd = open(mapping.name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (path_fd < 0) return -1;
  const int fd = is_file_of(path_fd, mapping) ? reopen(path_fd) : -1;
  close(path_fd);
  return fd;
}

// One that the program has open: all that a memfd has for a name.
int find_open(const Mapping& mapping) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return -1;
  int found = -1;
  while (const dirent* entry = found < 0 ? readdir(directory) : nullptr) {
    char* end;
    const long number = strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || number == dirfd(directory)) continue;
    const int fd = fcntl(static_cast<int>(number), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) continue;
    if (is_file_of(fd, mapping) && (fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) == O_RDWR) {
      found = fd;
    } else {
      close(fd);
    }
  }
  closedir(directory);
  return found;
}

}  // namespace

int open_region_file(const Mapping& mapping) {
  if (!mapping.shared || !mapping.writable || mapping.inode == 0) return -1;
  const int errno_before = errno;
  int fd = open_by_name(mapping);
  if (fd < 0) fd = find_open(mapping);
  errno = errno_before;
  return fd;
}

}  // namespace rocemu::provider
