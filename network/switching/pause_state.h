// The priorities that the other end of a cable has told a port not to send, each with the end of
// its pause (IEEE 802.1Qbb; 802.1Q-2018, 36.1).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.h"
#include "network/switching/settings.h"

namespace rocemu::network {

class PauseState {
 public:
  // A bit for each priority that may not send.
  uint8_t paused() const noexcept { return paused_; }

  // `until` may be now: resume.
  void set(unsigned priority, TimeNs now, TimeNs until) noexcept {
    account(now);
    until_[priority] = until;
    const auto bit = static_cast<uint8_t>(1u << priority);
    paused_ = until > now ? paused_ | bit : paused_ & ~bit;
  }
  // Ends the pauses whose time is over.
  void expire(TimeNs now) noexcept {
    account(now);
    for (unsigned i = 0; i < kPriorities; ++i)
      if (until_[i] <= now) paused_ &= ~static_cast<uint8_t>(1u << i);
  }
  void clear(TimeNs now) noexcept {
    account(now);
    paused_ = 0;
  }
  // The time for which there has been a pause of any priority.
  TimeNs paused_ns(TimeNs now) const noexcept {
    return paused_ns_ + (paused_ != 0 ? now - since_ : 0);
  }

 private:
  void account(TimeNs now) noexcept {
    paused_ns_ = paused_ns(now);
    since_ = now;
  }

  std::array<TimeNs, kPriorities> until_{};
  TimeNs since_ = 0;
  TimeNs paused_ns_ = 0;
  uint8_t paused_ = 0;
};

}  // namespace rocemu::network
