// MADs that wait until it is known where their destination is: one search for each destination,
// however many MADs there are for it. All of this is bounded, since a peer that has gone, or forged
// MADs, can ask for any number of answers. What finds no room is lost: its sender repeats it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulator/cm/types.h"

namespace rocemu::daemon {

struct PendingMadsLimits {
  size_t max_searches = 256;
  // So many of each destination always find room: the burst of another one does not shut it out.
  size_t sure_mads_per_destination = 8;
  // More are kept while fewer than this wait in all, since many connections may begin at once.
  size_t max_further_mads = 4096;
};

class PendingMads {
 public:
  explicit PendingMads(const PendingMadsLimits& limits = {}) : limits_(limits) {}

  enum class Next {
    search,   // the MAD waits; its destination is to be searched, and what waits to be taken after
    wait,     // the MAD waits for the search under way
    no_room,  // it was dropped
    no_more_searches,  // it was not kept: it can go only if its destination is known already
  };
  Next add(const cm::OutgoingMad& mad);

  // The search is over: what waited for it, in order.
  std::vector<cm::OutgoingMad> take(uint32_t device, const wire::Gid& destination);

  size_t searches() const { return waiting_.size(); }
  size_t mads() const { return mads_; }

 private:
  using Destination = std::pair<uint32_t, wire::Gid>;  // a device, and an address to send to

  PendingMadsLimits limits_;
  std::map<Destination, std::vector<cm::OutgoingMad>> waiting_;
  size_t mads_ = 0;
};

}  // namespace rocemu::daemon
