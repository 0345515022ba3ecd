// One direction of a link that has impairments: decides about its frames, and counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/time.h"
#include "impairment/assignment.h"
#include "impairment/link.h"

namespace rocemu::network {

struct LinkStats {
  uint64_t frames = 0;  // handed to the link
  uint64_t lost = 0;    // by chance
  uint64_t lost_in_outage = 0;
  uint64_t lost_in_queue = 0;  // no room in the link's queue, or among all frames under way
  uint64_t duplicated = 0;
  uint64_t corrupted = 0;
};

struct LinkReport {
  impairment::Spec spec;
  LinkStats stats;  // since the spec was set
};

class ImpairedLink {
 public:
  ImpairedLink(const impairment::Spec& spec, uint64_t link_seed)
      : spec_(spec), link_(spec.impairments, link_seed) {}

  LinkReport report() const { return {spec_, stats_}; }

  // `now` never goes back.
  impairment::Fate judge(TimeNs now, size_t length_bytes) {
    const impairment::Fate fate = link_.judge(now, length_bytes);
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

// Both directions of a port's link: transmit is from the port, receive to it. Ports of one switch
// have different numbers, so that their links draw differently.
class PortLinks {
 public:
  explicit PortLinks(uint32_t number) : number_(number) {}

  // A spec without impairments ends them. Takes memory; may throw std::bad_alloc.
  void set(impairment::Direction direction, const impairment::Spec& spec) {
    auto& link = links_[static_cast<size_t>(direction)];
    link.reset();
    if (spec.impairments != impairment::Impairments{})
      link = std::make_unique<ImpairedLink>(spec,
                                            impairment::link_seed(spec.seed, number_, direction));
  }

  // nullptr: a perfect wire.
  ImpairedLink* get(impairment::Direction direction) const noexcept {
    return links_[static_cast<size_t>(direction)].get();
  }

  LinkReport report(impairment::Direction direction) const {
    const ImpairedLink* const link = get(direction);
    return link != nullptr ? link->report() : LinkReport{};
  }

 private:
  uint32_t number_;
  std::unique_ptr<ImpairedLink> links_[2];
};

}  // namespace rocemu::network
