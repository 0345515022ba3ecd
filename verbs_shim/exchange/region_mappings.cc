#include "verbs_shim/exchange/region_mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_shim/exchange/procmap_query.h"

namespace rocemu::exchange {
namespace {

// The name as the kernel spells it.
constexpr char kRegionPath[] = "/memfd:" ROCEMU_REGION_FILE " (deleted)";
constexpr size_t kRegionPathLength = sizeof(kRegionPath) - 1;

int protection_of(bool readable, bool writable, bool executable) {
  return (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0) | (executable ? PROT_EXEC : 0);
}

void hand_on(RegionWalk& walk, uintptr_t from, uintptr_t to, int protection) {
  const RegionPart part = {from > walk.at ? from : walk.at, to < walk.end ? to : walk.end,
                           protection};
  walk.at = walk.on_part(walk.context, part) ? part.to : walk.end;
}

// The first shared mapping of a file that ends after `address`.
int ask(int maps, uintptr_t address, char* name, size_t name_size, ProcmapQuery& query) {
  query = {};
  query.size = sizeof(query);
  query.query_flags = kShared | kFileBacked | kCoveringOrNext;
  query.query_addr = address;
  query.vma_name_size = static_cast<uint32_t>(name_size);
  query.vma_name_addr = reinterpret_cast<uintptr_t>(name);
  return syscall(SYS_ioctl, maps, kProcmapQuery, &query) == 0 ? 0 : errno;
}

// The lines of a file by plain read(); of long ones the beginning.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}

  // False at the end, and when reading fails.
  bool next() {
    length_ = 0;
    for (;;) {
      if (at_ == bytes_ && !fill()) return false;
      const char c = buffer_[at_++];
      if (c == '\n') break;
      if (length_ < sizeof(line_) - 1) line_[length_++] = c;
    }
    line_[length_] = '\0';
    return true;
  }

  const char* line() const { return line_; }
  int error() const { return error_; }

 private:
  bool fill() {
    const long got = syscall(SYS_read, fd_, buffer_, sizeof(buffer_));
    if (got < 0) error_ = errno;
    at_ = 0;
    bytes_ = got > 0 ? static_cast<size_t>(got) : 0;
    return got > 0;
  }

  int fd_;
  int error_ = 0;
  size_t at_ = 0;
  size_t bytes_ = 0;
  size_t length_ = 0;
  char line_[160];  // the part in front of a region's path is shorter than 100
  char buffer_[1024];
};

uintptr_t read_hex(const char*& text) {
  uintptr_t value = 0;
  for (;; ++text) {
    if (*text >= '0' && *text <= '9') {
      value = value * 16 + static_cast<uintptr_t>(*text - '0');
    } else if (*text >= 'a' && *text <= 'f') {
      value = value * 16 + static_cast<uintptr_t>(*text - 'a' + 10);
    } else {
      return value;
    }
  }
}

}  // namespace

int query_regions(int maps, RegionWalk& walk) {
  while (walk.at < walk.end) {
    ProcmapQuery query;
    char name[sizeof(kRegionPath)];
    int error = ask(maps, walk.at, name, sizeof(name), query);
    // Then the kernel says nothing of the mapping, not even where it ends.
    const bool other_name = error == ENAMETOOLONG;
    if (other_name) error = ask(maps, walk.at, nullptr, 0, query);
    if (error == ENOENT) break;
    if (error != 0) return error;
    if (query.vma_start >= walk.end) break;
    if (!other_name && query.vma_name_size == sizeof(kRegionPath) &&
        memcmp(name, kRegionPath, sizeof(kRegionPath)) == 0) {
      hand_on(walk, query.vma_start, query.vma_end,
              protection_of((query.vma_flags & kReadable) != 0, (query.vma_flags & kWritable) != 0,
                            (query.vma_flags & kExecutable) != 0));
    } else {
      walk.at = query.vma_end;
    }
  }
  walk.at = walk.end;
  return 0;
}

// A line is "FROM-TO rwxs OFFSET MAJOR:MINOR INODE     PATH".
int read_regions(int maps, RegionWalk& walk) {
  Lines lines(maps);
  while (walk.at < walk.end && lines.next()) {
    const char* text = lines.line();
    const uintptr_t from = read_hex(text);
    if (*text++ != '-') continue;
    const uintptr_t to = read_hex(text);
    if (*text++ != ' ' || to <= walk.at) continue;
    if (from >= walk.end) break;
    const char* path = strchr(text, '/');
    if (path == nullptr || path - text < 5 || text[3] != 's' ||
        strncmp(path, kRegionPath, kRegionPathLength + 1) != 0) {
      continue;
    }
    hand_on(walk, from, to, protection_of(text[0] == 'r', text[1] == 'w', text[2] == 'x'));
  }
  if (lines.error() != 0) return lines.error();
  walk.at = walk.end;
  return 0;
}

int visit_regions(RegionWalk& walk) {
  const auto maps =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (maps < 0) return errno == ENOENT ? 0 : errno;
  int error = query_regions(maps, walk);
  if (error != 0) error = read_regions(maps, walk);
  syscall(SYS_close, maps);
  return error;
}

}  // namespace rocemu::exchange
