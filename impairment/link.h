// A link of a bad network: what it does to the frames of one direction, which is delay, jitter,
// rate and queue, loss, duplication, reordering, corruption, outages. Decides and does not act: no
// clock, no frame kept; time comes in, the times of arrival go out. The same seed and the same
// calls give the same answers. Knows nothing of what the frames carry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"

namespace rocemu::impairment {

// Probabilities are parts per million of frames. All zero: a perfect wire.
struct Impairments {
  uint64_t delay_ns = 0;
  uint64_t jitter_ns = 0;          // added to the delay, uniform, without changing the order
  uint64_t rate_bits_per_s = 0;    // 0: no limit
  uint64_t queue_limit_bytes = 0;  // what waits for the rate, else lost; 0: no limit
  uint32_t loss_ppm = 0;
  uint32_t duplicate_ppm = 0;
  uint32_t reorder_ppm = 0;  // held back by up to reorder_delay_ns while others overtake
  uint64_t reorder_delay_ns = 0;
  uint32_t corrupt_ppm = 0;  // one byte, any of the frame, is changed
  // An outage begins after a time of up to twice the mean interval, and takes up to twice the mean
  // length; all frames handed in during it are lost. Interval 0: none.
  uint64_t outage_interval_ns = 0;
  uint64_t outage_length_ns = 0;

  bool operator==(const Impairments&) const = default;
};

struct Arrival {
  uint64_t at_ns = 0;
  bool corrupted = false;
  size_t corrupt_offset_bytes = 0;  // which byte …
  uint8_t corrupt_mask = 0;         // … and what it is XORed with, never 0

  bool operator==(const Arrival&) const = default;
};

enum class Loss : uint8_t { none, random, queue_full, outage };

// One frame's fate: no arrival, one, or two when it is duplicated.
struct Fate {
  Loss loss = Loss::none;
  std::array<Arrival, 2> arrivals;
  size_t arrival_count = 0;
  std::span<const Arrival> view() const { return {arrivals.data(), arrival_count}; }
};

class Link {
 public:
  Link(const Impairments& impairments, uint64_t seed) : impairments_(impairments), random_(seed) {}

  // A frame of `length_bytes` (> 0) is handed to the link. `now_ns` never goes back.
  Fate judge(uint64_t now_ns, size_t length_bytes);

  const Impairments& impairments() const { return impairments_; }

 private:
  bool in_outage(uint64_t now_ns);
  Arrival arrive(uint64_t leaves_ns, size_t length_bytes);

  Impairments impairments_;
  Random random_;
  uint64_t free_at_ns_ = 0;       // when the last frame has left, at the rate
  uint64_t last_arrival_ns_ = 0;  // of the frames that keep their order
  uint64_t outage_from_ns_ = 0;
  uint64_t outage_until_ns_ = 0;
  bool outage_drawn_ = false;
};

// Applies an arrival's corruption to the frame.
void corrupt(const Arrival& arrival, std::span<std::byte> frame);

}  // namespace rocemu::impairment
