// How many packets may be unacknowledged: all that the limits allow, until packets are lost. With
// go-back-N everything sent behind a lost packet is sent in vain, so that on a lossy path a window
// larger than the path needs is a cost. Each loss halves it, down to what most paths need at least;
// it doubles again after some windows without a loss. So it comes to rest where a loss costs as
// much as a window that is too small.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu::transport {

class AdaptiveWindow {
 public:
  static constexpr uint32_t kMinPackets = 32;
  static constexpr uint32_t kWindowsToWiden = 4;

  uint32_t packets(uint32_t limit) const { return std::min(packets_, limit); }

  void on_loss(uint32_t limit) {
    packets_ = std::max(packets(limit) / 2, std::min(kMinPackets, limit));
    acknowledged_ = 0;
  }
  void on_acknowledged(uint32_t packets, uint32_t limit) {
    if (packets_ >= limit) return;
    acknowledged_ += packets;
    if (acknowledged_ < kWindowsToWiden * packets_) return;
    packets_ *= 2;
    acknowledged_ = 0;
  }

 private:
  uint32_t packets_ = ~0u;
  uint32_t acknowledged_ = 0;  // since the last loss or widening
};

}  // namespace rocemu::transport
