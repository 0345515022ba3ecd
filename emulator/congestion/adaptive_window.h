// A window that losses halve: all that the configuration allows, until packets are lost.
//
// 1. With go-back-N everything sent behind a lost packet is sent in vain, so that on a lossy path a
//    window larger than the path needs is a cost. Each loss halves it, down to kMinPackets, which
//    is what most paths need at least.
// 2. A NAK tells of a loss, and so does the ACK timeout, after which the whole window is sent again
//    at once. If the path does not carry that much within the timeout, nothing else makes the
//    window smaller: the same packets go out in vain until retry_count is used up, though none is
//    lost any more (congestion_test.cc). On a path that is cut now and then it halves what is sent
//    again: at 10 Gbit/s, cut for 2 of 4 ms, with 256 packets of 4096 bytes, 19 % instead of 48 %,
//    at 14 % more goodput. With random loss it changes nothing (tests/data/goodput.txt): NAKs have
//    brought the window down before a timeout comes.
// 3. A probe (early retransmission) is no loss: it may be needless.
// 4. The window doubles again after kWindowsToWiden windows were acknowledged without a loss. So it
//    comes to rest where a loss costs as much as a window that is too small.
// 5. It goes by counts alone: neither by round-trip times nor by what has been sent.
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
  void on_timeout(TimeNs) { halve(); }

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
