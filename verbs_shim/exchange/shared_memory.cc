#include "verbs_shim/exchange/shared_memory.h"

#include <errno.h>
#include <sys/mman.h>

#include "verbs_shim/exchange/c_library.h"

namespace rocemu::exchange {

int SharedMemory::map(int fd, size_t size, int protection) {
  if (fd < 0) return EMFILE;  // it came with a message, and there was no room for it
  struct stat file;
  if (file_status(fd, &file) != 0) return errno;
  if (size == 0 || file.st_size < 0 || static_cast<size_t>(file.st_size) < size) return EINVAL;
  void* mapped = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return errno;
  address = mapped;
  bytes = size;
  return 0;
}

void SharedMemory::unmap() {
  if (address != nullptr) munmap(address, bytes);
  address = nullptr;
  bytes = 0;
}

}  // namespace rocemu::exchange
