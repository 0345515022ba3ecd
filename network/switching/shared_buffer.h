// The memory of a switch: which frame finds room in it, and when the one who sends them is to
// pause. All in bytes of frames.
//
//   - Its size less the headroom is shared by all queues.
//   - A lossy frame is taken while its queue stays within the limit: a part of what is free
//     (Choudhury and Hahne, 1998), or a fixed one.
//   - A lossless frame counts for the port and priority that it came by. Up to the threshold of
//     their pause it is in the shared part, and beyond it in their headroom.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "network/switching/settings.h"
#include "network/topology/topology.h"

namespace rocemu::network {

// The bytes that a cable brings until a pause has taken effect: those under way in both directions,
// the pause, and at each end one frame that had been begun (IEEE 802.1Qbb, annex O).
constexpr uint64_t headroom_of(uint64_t rate_bits_per_s, TimeNs delay_ns) noexcept {
  constexpr uint64_t kFrameBytes = 4352;  // RoCE's largest, and some
  constexpr uint64_t kPauseBytes = 64;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(rate_bits_per_s) * delay_ns * 2 /
                               8'000'000'000) +
         2 * kFrameBytes + kPauseBytes;
}

// The headroom of each port of a switch, in the order of its ports.
inline std::vector<uint64_t> headroom_at(const Topology& topology, const SwitchSettings& settings,
                                         std::span<const uint32_t> ports) {
  std::vector<uint64_t> headroom;
  for (const uint32_t port : ports) {
    const LinkSettings& link = topology.links[link_of(port)].settings;
    headroom.push_back(settings.pfc.headroom_bytes != 0
                           ? settings.pfc.headroom_bytes
                           : headroom_of(link.rate_bits_per_s, link.delay_ns));
  }
  return headroom;
}

class SharedBuffer {
 public:
  // headroom_bytes[i] is that of each lossless priority of port i.
  SharedBuffer(const SwitchSettings& settings, std::vector<uint64_t> headroom_bytes)
      : settings_(settings),
        headroom_limits_(std::move(headroom_bytes)),
        ingress_(headroom_limits_.size()),
        free_bytes_(shared_bytes(settings, headroom_limits_)) {}

  // 0 when there is no room but for headroom.
  static uint64_t shared_bytes(const SwitchSettings& settings,
                               const std::vector<uint64_t>& headroom_bytes) {
    uint64_t headroom = 0;
    for (const uint64_t bytes : headroom_bytes)
      headroom += bytes * static_cast<unsigned>(__builtin_popcount(settings.pfc.lossless));
    return settings.buffer_bytes > headroom ? settings.buffer_bytes - headroom : 0;
  }

  bool is_lossless(unsigned priority) const noexcept {
    return (settings_.pfc.lossless >> priority & 1) != 0;
  }
  uint64_t free_bytes() const noexcept { return free_bytes_; }

  // False when there is no room for it in a queue of so many bytes.
  bool admit_lossy(uint64_t queue_bytes, uint64_t length_bytes) noexcept {
    const uint64_t limit = settings_.queue_limit_bytes != 0 ? settings_.queue_limit_bytes
                                                            : part_of_free(settings_.alpha_ppm);
    if (length_bytes > free_bytes_ || queue_bytes + length_bytes > limit) return false;
    free_bytes_ -= length_bytes;
    return true;
  }
  void release_lossy(uint64_t length_bytes) noexcept { free_bytes_ += length_bytes; }

  // False when not even the headroom has room.
  bool admit_lossless(uint32_t port, unsigned priority, uint64_t length_bytes) noexcept {
    Ingress& ingress = ingress_[port][priority];
    if (length_bytes <= free_bytes_ && ingress.shared_bytes + length_bytes <= xoff_bytes()) {
      ingress.shared_bytes += length_bytes;
      free_bytes_ -= length_bytes;
      return true;
    }
    if (ingress.headroom_bytes + length_bytes > headroom_limits_[port]) return false;
    ingress.headroom_bytes += length_bytes;
    return true;
  }
  // The headroom is given back first.
  void release_lossless(uint32_t port, unsigned priority, uint64_t length_bytes) noexcept {
    Ingress& ingress = ingress_[port][priority];
    const uint64_t of_headroom = std::min(ingress.headroom_bytes, length_bytes);
    ingress.headroom_bytes -= of_headroom;
    ingress.shared_bytes -= length_bytes - of_headroom;
    free_bytes_ += length_bytes - of_headroom;
  }

  bool wants_pause(uint32_t port, unsigned priority) const noexcept {
    const Ingress& ingress = ingress_[port][priority];
    return ingress.headroom_bytes > 0 || ingress.shared_bytes >= xoff_bytes();
  }
  bool wants_resume(uint32_t port, unsigned priority) const noexcept {
    const Ingress& ingress = ingress_[port][priority];
    return ingress.headroom_bytes == 0 && ingress.shared_bytes <= xon_bytes();
  }

 private:
  struct Ingress {
    uint64_t shared_bytes = 0;
    uint64_t headroom_bytes = 0;
  };

  uint64_t part_of_free(uint32_t ppm) const noexcept {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(free_bytes_) * ppm / kOneInPpm);
  }
  uint64_t xoff_bytes() const noexcept {
    return settings_.pfc.xoff_bytes != 0 ? settings_.pfc.xoff_bytes
                                         : part_of_free(settings_.pfc.alpha_ppm);
  }
  uint64_t xon_bytes() const noexcept {
    if (settings_.pfc.xoff_bytes != 0) return settings_.pfc.xon_bytes;
    const uint64_t xoff = xoff_bytes();
    return xoff - std::min(xoff, settings_.pfc.resume_offset_bytes);
  }

  const SwitchSettings& settings_;
  std::vector<uint64_t> headroom_limits_;  // by port
  std::vector<std::array<Ingress, kPriorities>> ingress_;
  uint64_t free_bytes_;  // free bytes of the shared part
};

}  // namespace rocemu::network
