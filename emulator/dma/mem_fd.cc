#include "emulator/dma/mem_fd.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "base/reaper/reaper.h"

namespace rocemu::dma {
namespace {

// fstatfs(2) asks a file's server, and that of a FUSE mount answers when it likes. So the kernel is
// first asked what it knows by itself: procfs has blocks of this size, while ordinary users' FUSE
// mounts have those of a page.
constexpr int kProcBlockBytes = 1024;

bool may_be_procfs(int fd) noexcept {
  int block_bytes = 0;
  return ioctl(fd, FIGETBSZ, &block_bytes) == 0 && block_bytes == kProcBlockBytes;
}

}  // namespace

// The last descriptor of a program that has ended takes down all of its memory, and what is no file
// of procfs may wait for anybody.
MemFd::~MemFd() { close_elsewhere(UniqueFd(fd_)); }

bool MemFd::is_process_memory() const noexcept {
  if (fd_ < 0) return false;
  const int flags = fcntl(fd_, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || !may_be_procfs(fd_)) return false;

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
