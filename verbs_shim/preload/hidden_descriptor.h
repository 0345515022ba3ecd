// A descriptor of this library's own. The program does not know of it, and may close all that it
// does not know (close_range(2), a loop over all numbers) and have another file at the number.
#pragma once

#include <sys/types.h>

namespace rocemu::preload {

class HiddenDescriptor {
 public:
  constexpr HiddenDescriptor() = default;
  HiddenDescriptor(const HiddenDescriptor&) = delete;
  HiddenDescriptor& operator=(const HiddenDescriptor&) = delete;

  // From now on this one, which is open. What was held is forgotten.
  void hold(int fd);
  // -1: none is held.
  int number() const { return fd_; }
  // Whether one is held that still is the file that it was.
  bool is_there() const;
  // Closes it, if it is, and holds none.
  void close();

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace rocemu::preload
