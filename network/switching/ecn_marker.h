// Decides which departing frames a queue marks.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "network/switching/settings.h"

namespace rocemu::network {

class EcnMarker {
 public:
  EcnMarker() = default;
  // Without settings it marks none.
  EcnMarker(const std::optional<EcnSettings>& settings, uint64_t rate_bits_per_s) {
    if (!settings || !settings->on) return;
    const auto scaled = [&](uint64_t bytes) {
      if (settings->at_rate_bits_per_s == 0) return bytes;
      return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * rate_bits_per_s /
                                   settings->at_rate_bits_per_s);
    };
    kmin_bytes_ = scaled(settings->kmin_bytes);
    kmax_bytes_ = scaled(settings->kmax_bytes);
    pmax_ppm_ = settings->pmax_ppm;
  }

  // The queue has `queue_bytes` behind the frame. Draws only between the thresholds.
  bool marks(uint64_t queue_bytes, Random& random) const noexcept {
    if (queue_bytes <= kmin_bytes_) return false;
    if (queue_bytes > kmax_bytes_) return true;
    return random.chance(static_cast<uint32_t>(static_cast<unsigned __int128>(pmax_ppm_) *
                                               (queue_bytes - kmin_bytes_) /
                                               (kmax_bytes_ - kmin_bytes_)));
  }

 private:
  uint64_t kmin_bytes_ = ~uint64_t{0};
  uint64_t kmax_bytes_ = ~uint64_t{0};
  uint32_t pmax_ppm_ = 0;
};

}  // namespace rocemu::network
