// The buffers of a socket in the kernel: frames that have arrived and wait, frames that wait to
// leave.
#pragma once

#include <cstdint>

namespace rocemu::dpdk_io {

// Has the kernel hold 8 MB in each direction, or what it grants to an ordinary user.
void enlarge_buffers(int fd) noexcept;

// The size of the receive buffer as the kernel counts: each datagram with some overhead.
unsigned receive_buffer_bytes(int fd) noexcept;

// The number of datagrams, frames or batches that have come since the socket was made and found no
// room in it.
uint64_t overflows(int fd) noexcept;

}  // namespace rocemu::dpdk_io
