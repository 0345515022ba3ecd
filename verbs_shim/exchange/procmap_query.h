// PROCMAP_QUERY of linux/fs.h, Linux 6.11 and later, which Debian 12's headers do not have: one
// mapping of a process, asked for on an open /proc/PID/maps.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>

namespace rocemu::exchange {

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
  uint32_t vma_name_size;  // with the zero at its end
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
inline constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);

// True for the errors of a kernel that does not know the call: Linux before 6.11, and qemu-user,
// which hands on only what it knows and says ENOSYS of the rest.
constexpr bool is_unknown_call(int error) { return error == ENOTTY || error == ENOSYS; }

// Bits of vma_flags, and of query_flags to ask for such mappings alone.
inline constexpr uint64_t kReadable = 0x01;
inline constexpr uint64_t kWritable = 0x02;
inline constexpr uint64_t kExecutable = 0x04;
inline constexpr uint64_t kShared = 0x08;
// Bits of query_flags.
inline constexpr uint64_t kCoveringOrNext = 0x10;
inline constexpr uint64_t kFileBacked = 0x20;

}  // namespace rocemu::exchange
