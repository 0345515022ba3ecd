#include "verbs_shim/memory_watch/shared_mapping.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu::memory_watch {
namespace {

// A line is "FROM-TO rwxs OFFSET MAJOR:MINOR INODE     PATH"; what is behind the rights is dropped.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}

  // False at the end.
  bool next(char (&line)[64]) {
    size_t length = 0;
    for (;;) {
      if (at_ == bytes_ && !fill()) return false;
      const char c = buffer_[at_++];
      if (c == '\n') break;
      if (length < sizeof line - 1) line[length++] = c;
    }
    line[length] = '\0';
    return true;
  }

 private:
  bool fill() {
    const long got = syscall(SYS_read, fd_, buffer_, sizeof buffer_);
    at_ = 0;
    bytes_ = got > 0 ? static_cast<size_t>(got) : 0;
    return got > 0;
  }

  int fd_;
  size_t at_ = 0;
  size_t bytes_ = 0;
  char buffer_[1024];
};

}  // namespace

bool is_shared(uintptr_t address) {
  const auto maps =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (maps < 0) return false;
  Lines lines(maps);
  bool shared = false;
  char line[64];
  while (lines.next(line)) {
    char* rest;
    const uintptr_t from = strtoul(line, &rest, 16);
    if (*rest != '-') continue;
    const uintptr_t to = strtoul(rest + 1, &rest, 16);
    if (*rest != ' ' || to <= address) continue;
    constexpr size_t kSharing = 4;  // behind the blank and three rights
    shared = from <= address && strnlen(rest, kSharing + 1) > kSharing && rest[kSharing] == 's';
    break;
  }
  syscall(SYS_close, maps);
  return shared;
}

}  // namespace rocemu::memory_watch
