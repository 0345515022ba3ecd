// Without hugepages DPDK takes its memory from a memfd, so that the backend of a virtio device can
// map it as well. That has pages of 4 KiB unless the administrator has said otherwise, and the
// first touch of each is a page fault: 4,600 of them for a pool of frames, which is half of the
// processor's time of a start in a virtual machine. Where no device shares the memory it can be
// private, and that is had in pages of 2 MiB for the asking, from a kernel that gives any
// (/sys/kernel/mm/transparent_hugepage/enabled: "always" or "madvise").
//
// It is so by this library's definition of memfd_create, which the dynamic linker prefers over
// libc's, and which fails for DPDK while a PrivateMemory lives: DPDK then maps private memory. At
// all other times it is the plain system call.
#pragma once

namespace rocemu::dpdk_io {

class PrivateMemory {
 public:
  explicit PrivateMemory(bool wanted);
  ~PrivateMemory();

  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
};

// Asks for large pages for all memory that DPDK has. Nothing happens where the kernel has none.
void ask_for_large_pages();

}  // namespace rocemu::dpdk_io
