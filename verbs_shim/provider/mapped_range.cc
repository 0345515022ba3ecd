#include "verbs_shim/provider/mapped_range.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace rocemu::provider {
namespace {

// PROCMAP_QUERY of linux/fs.h, Linux 6.11 and later; Debian 12's headers do not have it.
struct ProcmapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t kReadable = 1;
constexpr uint64_t kWritable = 2;

// One query for each mapping in the range. ENOTTY: the kernel does not know the call.
int query_mappings(int maps, uintptr_t at, uintptr_t end, uint64_t needed) {
  while (at < end) {
    ProcmapQuery query = {};
    query.size = sizeof query;
    query.query_addr = at;
    if (ioctl(maps, kProcmapQuery, &query) != 0) return errno == ENOENT ? EFAULT : errno;
    if ((query.vma_flags & needed) != needed) return EFAULT;
    at = query.vma_end;
  }
  return 0;
}

// The same from the text, which has a line for each mapping in the order of addresses.
int read_mappings(int maps, uintptr_t at, uintptr_t end, uint64_t needed) {
  FILE* lines = fdopen(dup(maps), "re");
  if (lines == nullptr) return errno;
  char line[512];
  bool whole_line = true;
  while (at < end && fgets(line, sizeof line, lines) != nullptr) {
    const bool starts_line = whole_line;
    size_t length = 0;
    while (line[length] != '\0') ++length;
    whole_line = length > 0 && line[length - 1] == '\n';
    unsigned long from;
    unsigned long to;
    char rights[5];
    if (!starts_line || sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || to <= at) continue;
    const uint64_t has = (rights[0] == 'r' ? kReadable : 0) | (rights[1] == 'w' ? kWritable : 0);
    if (from > at || (has & needed) != needed) break;
    at = to;
  }
  fclose(lines);
  return at < end ? EFAULT : 0;
}

}  // namespace

int check_mapped(uintptr_t address, size_t bytes, bool for_writing) {
  uintptr_t end;
  if (__builtin_add_overflow(address, bytes, &end)) return EINVAL;
  if (bytes == 0) return 0;
  const uint64_t needed = kReadable | (for_writing ? kWritable : 0);
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return 0;  // no /proc here: the NIC finds out when it moves data
  int error = query_mappings(maps, address, end, needed);
  if (error == ENOTTY || error == EINVAL) error = read_mappings(maps, address, end, needed);
  close(maps);
  return error;
}

}  // namespace rocemu::provider
