// A window that losses halve: all that the configuration allows, until packets are lost.
//
// 1. With go-back-N everything sent behind a lost packet is sent in vain, so that on a lossy path a
//    window larger than the path needs is a cost. Each loss halves it, down to kMinPackets, which
//    is what most paths need at least.
// 2. It doubles again after kWindowsToWiden windows were acknowledged without a loss. So it comes
// to
//    rest where a loss costs as much as a window that is too small.
// 3. It goes by counts alone: neither by round-trip times nor by what has been sent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/congestion/congestion_control.h"

namespace rocemu::congestion {

class AdaptiveWindow {
 public:
  static constexpr uint32_t kMinPackets = 32;
  static constexpr uint32_t kWindowsToWiden = 4;

  // `limit_packets`: the most that the configuration allows; the window never exceeds it.
  explicit AdaptiveWindow(uint32_t limit_packets)
      : limit_(limit_packets), packets_(limit_packets) {}

  uint32_t packets() const { return packets_; }

  void on_sent(TimeNs, uint32_t) {}
  void on_acknowledged(TimeNs, uint32_t packets, std::optional<TimeNs>) {
    if (packets_ >= limit_) return;
    acknowledged_ += packets;
    if (acknowledged_ < kWindowsToWiden * packets_) return;
    packets_ = std::min(2 * packets_, limit_);
    acknowledged_ = 0;
  }
  void on_nak(TimeNs) { halve(); }
  void on_timeout(TimeNs) {}

 private:
  void halve() {
    packets_ = std::max(packets_ / 2, std::min(kMinPackets, limit_));
    acknowledged_ = 0;
  }

  uint32_t limit_;
  uint32_t packets_;
  uint32_t acknowledged_ = 0;  // since the last loss or widening
};

static_assert(CongestionControl<AdaptiveWindow>);

}  // namespace rocemu::congestion
