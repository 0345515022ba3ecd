#include "emulator/dma/mem_fd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

namespace rocemu::dma {

MemFd::~MemFd() {
  if (fd_ >= 0) close(fd_);
}

bool MemFd::is_process_memory() const noexcept {
  if (fd_ < 0) return false;
  const int flags = fcntl(fd_, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR) return false;

  std::array<char, 32> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd_);
  std::array<char, 256> target{};
  const ssize_t length = readlink(link.data(), target.data(), target.size());
  if (length < 0) return false;
  if (!std::string_view(target.data(), static_cast<size_t>(length)).ends_with("/mem")) return false;

  struct statfs file_system {};
  return fstatfs(fd_, &file_system) == 0 && file_system.f_type == PROC_SUPER_MAGIC;
}

}  // namespace rocemu::dma
