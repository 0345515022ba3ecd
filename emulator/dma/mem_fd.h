// A descriptor of /proc/self/mem that a program opened and handed over.
//
// Such a descriptor is bound to the address space it was opened on, so neither process-id reuse nor
// execve can turn it to another program's memory, and it needs no ptrace permission to use.
//
// Trap: moves through it ignore page protection (FOLL_FORCE in the kernel's fs/proc/base.c). Writes
// go through read-only pages of private mappings, reads through PROT_NONE. The NIC's own protection
// check is the only one there is.
#pragma once

namespace rocemu::dma {

// A file descriptor with an owner. -1 is none.
class MemFd {
 public:
  explicit MemFd(int fd) noexcept : fd_(fd) {}
  ~MemFd();
  MemFd(const MemFd&) = delete;
  MemFd& operator=(const MemFd&) = delete;

  int get() const noexcept { return fd_; }

  // True when this is a mem file of procfs, open for reading and writing. Anything else a program
  // might hand over is refused, since reading it could block or have effects of its own.
  bool is_process_memory() const noexcept;

 private:
  int fd_;
};

}  // namespace rocemu::dma
