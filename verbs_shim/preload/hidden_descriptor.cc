#include "verbs_shim/preload/hidden_descriptor.h"

#include <sys/stat.h>

#include "verbs_shim/preload/real.h"

namespace rocemu::preload {

void HiddenDescriptor::hold(int fd) {
  struct stat file = {};
  real().fstat(fd, &file);
  fd_ = fd;
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

bool HiddenDescriptor::is_there() const {
  struct stat file;
  return fd_ >= 0 && real().fstat(fd_, &file) == 0 && file.st_dev == device_ &&
         file.st_ino == inode_;
}

void HiddenDescriptor::close() {
  if (is_there()) real().close(fd_);
  fd_ = -1;
}

}  // namespace rocemu::preload
