// One direction of a port's link that has impairments: what decides about its frames, and counts.
#pragma once

#include <cstdint>

#include "impairment/assignment.h"
#include "impairment/link.h"

namespace rocemu::dpdk_io {

struct LinkStats {
  uint64_t frames = 0;  // handed to the link
  uint64_t lost = 0;    // by chance
  uint64_t lost_in_outage = 0;
  uint64_t lost_in_queue = 0;  // of the link, or of all frames under way
  uint64_t duplicated = 0;
  uint64_t corrupted = 0;
};

class ImpairedLink {
 public:
  ImpairedLink(const impairment::Spec& spec, uint64_t link_seed)
      : spec_(spec), link_(spec.impairments, link_seed) {}

  const impairment::Spec& spec() const noexcept { return spec_; }
  const LinkStats& stats() const noexcept { return stats_; }

  // `now_ns` never goes back.
  impairment::Fate judge(uint64_t now_ns, size_t length_bytes) noexcept {
    const impairment::Fate fate = link_.judge(now_ns, length_bytes);
    ++stats_.frames;
    stats_.lost += fate.loss == impairment::Loss::random;
    stats_.lost_in_outage += fate.loss == impairment::Loss::outage;
    stats_.lost_in_queue += fate.loss == impairment::Loss::queue_full;
    stats_.duplicated += fate.arrival_count == 2;
    for (const impairment::Arrival& arrival : fate.view()) stats_.corrupted += arrival.corrupted;
    return fate;
  }

  // There was no room for a frame that was to arrive later.
  void on_no_room() noexcept { ++stats_.lost_in_queue; }

 private:
  impairment::Spec spec_;
  impairment::Link link_;
  LinkStats stats_;
};

}  // namespace rocemu::dpdk_io
