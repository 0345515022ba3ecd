#include "dpdk_io/ip_host/neighbour_cache.h"

#include <algorithm>

namespace rocemu::dpdk_io {

NeighbourCache::LookUp NeighbourCache::look_up(TimeNs now, const IpAddress& address) {
  const auto known = known_.find(address);
  if (known != known_.end() && now - known->second.heard_at < kValidNs)
    return {known->second.mac, false};
  if (asked_.contains(address) || asked_.size() >= kMaxAsked) return {};
  asked_[address] = {now + kAskAgainNs};
  next_ask_ = std::min(next_ask_, now + kAskAgainNs);
  return {std::nullopt, true};
}

void NeighbourCache::learn(TimeNs now, const IpAddress& address, const MacAddress& mac,
                           bool replacing) {
  const auto known = known_.find(address);
  if (asked_.erase(address) == 0 && known == known_.end()) return;
  if (asked_.empty()) next_ask_ = kNever;
  if (known == known_.end()) {
    make_room(now);
    known_[address] = {mac, now};
  } else if (replacing || known->second.mac == mac) {
    known->second = {mac, now};
  }
}

// Beyond the bound the one that was heard of longest ago goes, which costs somebody a question.
void NeighbourCache::make_room(TimeNs now) {
  if (known_.size() < kMaxKnown) return;
  std::erase_if(known_, [&](const auto& entry) { return now - entry.second.heard_at >= kValidNs; });
  if (known_.size() < kMaxKnown) return;
  known_.erase(std::ranges::min_element(known_, {},
                                        [](const auto& entry) { return entry.second.heard_at; }));
}

std::vector<IpAddress> NeighbourCache::due(TimeNs now) {
  std::vector<IpAddress> again;
  if (now < next_ask_) return again;
  next_ask_ = kNever;
  for (auto entry = asked_.begin(); entry != asked_.end();) {
    Asked& asked = entry->second;
    if (asked.again_at <= now) {
      if (asked.questions == kQuestions) {
        entry = asked_.erase(entry);
        continue;
      }
      ++asked.questions;
      asked.again_at = now + kAskAgainNs;
      again.push_back(entry->first);
    }
    next_ask_ = std::min(next_ask_, asked.again_at);
    ++entry;
  }
  return again;
}

}  // namespace rocemu::dpdk_io
