// Memory that the NIC made and handed over as a memfd.
#pragma once

#include <stddef.h>

namespace rocemu::exchange {

struct SharedMemory {
  void* address = nullptr;
  size_t bytes = 0;

  // Maps the first `size` bytes of `fd`. EINVAL when it holds fewer; otherwise mmap's errno.
  int map(int fd, size_t size, int protection);
  void unmap();
};

}  // namespace rocemu::exchange
