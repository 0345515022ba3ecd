#include "emulator/daemon/cm_service/pending_mads.h"

namespace rocemu::daemon {

PendingMads::Next PendingMads::add(const cm::OutgoingMad& mad) {
  const Destination destination{mad.route.device, mad.route.remote};
  const auto found = waiting_.find(destination);
  if (found == waiting_.end()) {
    if (waiting_.size() >= limits_.max_searches) return Next::no_more_searches;
    waiting_[destination].push_back(mad);
    ++mads_;
    return Next::search;
  }
  std::vector<cm::OutgoingMad>& mads = found->second;
  if (mads.size() >= limits_.sure_mads_per_destination && mads_ >= limits_.max_further_mads)
    return Next::no_room;
  mads.push_back(mad);
  ++mads_;
  return Next::wait;
}

std::vector<cm::OutgoingMad> PendingMads::take(uint32_t device, const wire::Gid& destination) {
  const auto found = waiting_.find({device, destination});
  if (found == waiting_.end()) return {};
  std::vector<cm::OutgoingMad> mads = std::move(found->second);
  waiting_.erase(found);
  mads_ -= mads.size();
  return mads;
}

}  // namespace rocemu::daemon
