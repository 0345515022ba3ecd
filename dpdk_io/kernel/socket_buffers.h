// What the kernel holds for a socket: frames that have arrived and wait, frames that wait to leave.
#pragma once

namespace rocemu::dpdk_io {

// Has the kernel hold 8 MB in each direction, or what it grants to an ordinary user.
void enlarge_buffers(int fd) noexcept;

// As the kernel counts them: each datagram with some overhead.
unsigned receive_buffer_bytes(int fd) noexcept;

}  // namespace rocemu::dpdk_io
