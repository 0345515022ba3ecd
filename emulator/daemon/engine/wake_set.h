// WakeSet is what a sleeping engine waits for: the eventfds that others write to wake it, and the
// descriptors of ports.
//
// An eventfd that a program holds is in the program's power: it can drain it, fill it, or make
// reads of it block. Hence each program gets one of its own, and the engine never reads any:
// epoll's edge triggering (epoll(7)) reports each write once.
#pragma once

#include "base/time.h"
#include "base/unique_fd.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::daemon {

class WakeSet {
 public:
  WakeSet();  // throws std::system_error
  WakeSet(const WakeSet&) = delete;
  WakeSet& operator=(const WakeSet&) = delete;

  // Adds the descriptor of a port that outlives the set. Throws std::system_error.
  void add_port(int fd);
  // Nothing happens when the descriptor is not in the set.
  void remove_port(int fd) noexcept;

  // Waits until something wakes it (true) or `timeout_ns` has passed (false); kNever: no limit.
  bool wait(TimeNs timeout_ns) noexcept;

 private:
  friend class WakeFd;
  UniqueFd epoll_;
  bool has_pwait2_ = true;
};

// WakeFd is an eventfd that wakes a set when somebody writes to it. Any thread may make, ring and
// destroy it.
class WakeFd {
 public:
  explicit WakeFd(WakeSet& set);  // throws std::system_error
  ~WakeFd();
  WakeFd(const WakeFd&) = delete;
  WakeFd& operator=(const WakeFd&) = delete;

  int get() const noexcept { return fd_.get(); }
  void ring() const noexcept;

 private:
  WakeSet& set_;
  UniqueFd fd_;
};

}  // namespace rocemu::daemon
