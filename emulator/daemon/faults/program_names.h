// The names of programs, by which faults say whose calls, requests and packets they are about. They
// are asked for at each of these, and a file of /proc read for each would cost more than all else:
// so a name is believed for a while. Programs change theirs, or make way for others of the same
// number.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/time.h"

namespace rocemu::daemon {

class ProgramNames {
 public:
  static constexpr TimeNs kBelievedNs = 20'000'000;
  static constexpr size_t kMax = 4096;  // names; then it begins anew

  using Read = std::function<std::string(pid_t)>;
  using Clock = std::function<TimeNs()>;
  ProgramNames(Read read, Clock clock) : read_(std::move(read)), clock_(std::move(clock)) {}

  // Any thread may ask.
  std::string of(pid_t pid) {
    const TimeNs now = clock_();
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(pid);
    if (found != names_.end() && now - found->second.read_at_ns < kBelievedNs)
      return found->second.name;
    if (names_.size() >= kMax) names_.clear();
    return (names_[pid] = {read_(pid), now}).name;
  }

 private:
  struct Known {
    std::string name;
    TimeNs read_at_ns = 0;
  };

  const Read read_;
  const Clock clock_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Known> names_;
};

}  // namespace rocemu::daemon
