#include "emulator/transport/notification_point.h"

namespace rocemu::transport {

bool NotificationPoint::on_marked(TimeNs now, const FlowKey& flow) {
  const TimeNs until = now + settings_.min_time_between_cnps_ns;
  const auto known = silent_until_.find(flow);
  if (known != silent_until_.end()) {
    if (now < known->second) return false;
    known->second = until;
    return true;
  }
  if (silent_until_.size() >= kMaxFlows)
    std::erase_if(silent_until_, [now](const auto& entry) { return entry.second <= now; });
  if (silent_until_.size() >= kMaxFlows) return false;
  silent_until_.emplace(flow, until);
  return true;
}

}  // namespace rocemu::transport
