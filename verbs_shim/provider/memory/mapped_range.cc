#include "verbs_shim/provider/memory/mapped_range.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "verbs_shim/exchange/procmap_query.h"

namespace rocemu::provider {
namespace {

using namespace exchange;

// The state of a walk over the mappings of a range.
struct Search {
  uintptr_t at;
  uintptr_t end;
  uint64_t needed;
  Mapping& first;
};

int ask(int maps, ProcmapQuery& query) {
  if (ioctl(maps, kProcmapQuery, &query) == 0) return 0;
  return errno == ENOENT ? EFAULT : errno;
}

// One query for each mapping in the range.
int query_mappings(int maps, Search search) {
  Mapping& first = search.first;
  for (bool is_first = true; search.at < search.end; is_first = false) {
    ProcmapQuery query = {};
    query.size = sizeof query;
    query.query_addr = search.at;
    if (is_first) {
      query.vma_name_addr = reinterpret_cast<uintptr_t>(first.name);
      query.vma_name_size = sizeof first.name;
    }
    int error = ask(maps, query);
    if (error == ENAMETOOLONG) {
      query.vma_name_addr = query.vma_name_size = 0;
      error = ask(maps, query);
    }
    if (error != 0) return error;
    if ((query.vma_flags & search.needed) != search.needed) return EFAULT;
    search.at = query.vma_end;
    if (!is_first) continue;
    first.from = query.vma_start;
    first.to = query.vma_end;
    first.readable = (query.vma_flags & kReadable) != 0;
    first.writable = (query.vma_flags & kWritable) != 0;
    first.executable = (query.vma_flags & kExecutable) != 0;
    first.shared = (query.vma_flags & kShared) != 0;
    first.offset_bytes = query.vma_offset;
    first.device = makedev(query.dev_major, query.dev_minor);
    first.inode = query.inode;
    if (query.vma_name_size == 0) first.name[0] = '\0';
  }
  return 0;
}

// False for the rest of a line that was too long.
bool parse_line(char* line, Mapping& mapping) {
  char rights[5];
  unsigned major_number;
  unsigned minor_number;
  int name = 0;
  if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &mapping.from, &mapping.to, rights,
             &mapping.offset_bytes, &major_number, &minor_number, &mapping.inode, &name) != 7) {
    return false;
  }
  mapping.readable = rights[0] == 'r';
  mapping.writable = rights[1] == 'w';
  mapping.executable = rights[2] == 'x';
  mapping.shared = rights[3] == 's';
  mapping.device = makedev(major_number, minor_number);
  const size_t length = strcspn(line + name, "\n");
  memcpy(mapping.name, line + name, length);
  mapping.name[length] = '\0';
  return true;
}

// The same from the text, which has a line for each mapping in the order of addresses. Closes
// `maps`.
int read_mappings(int maps, Search search) {
  FILE* lines = fdopen(maps, "r");
  if (lines == nullptr) {
    const int error = errno;
    close(maps);
    return error;
  }
  char line[sizeof(Mapping::name)];
  bool whole_line = true;
  bool is_first = true;
  Mapping later;
  while (search.at < search.end && fgets(line, sizeof line, lines) != nullptr) {
    const bool starts_line = whole_line;
    whole_line = strchr(line, '\n') != nullptr;
    Mapping& mapping = is_first ? search.first : later;
    if (!starts_line || !parse_line(line, mapping) || mapping.to <= search.at) continue;
    const uint64_t has = (mapping.readable ? kReadable : 0) | (mapping.writable ? kWritable : 0);
    if (mapping.from > search.at || (has & search.needed) != search.needed) break;
    search.at = mapping.to;
    is_first = false;
  }
  fclose(lines);
  return search.at < search.end ? EFAULT : 0;
}

}  // namespace

int check_mapped(uintptr_t address, size_t bytes, bool for_writing, Mapping& mapping) {
  uintptr_t end;
  if (__builtin_add_overflow(address, bytes, &end)) return EINVAL;
  if (bytes == 0) return 0;
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return 0;  // no /proc here: the NIC finds out when it moves data
  const Search search = {address, end, kReadable | (for_writing ? kWritable : 0), mapping};
  const int error = query_mappings(maps, search);
  if (is_unknown_call(error) || error == EINVAL) return read_mappings(maps, search);
  close(maps);
  return error;
}

}  // namespace rocemu::provider
