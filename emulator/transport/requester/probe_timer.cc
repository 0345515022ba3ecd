#include "emulator/transport/requester/probe_timer.h"

#include <algorithm>

namespace rocemu::transport {

ProbeTimer::Next ProbeTimer::on_progress(wire::Psn una, wire::Psn sent_end,
                                         std::optional<TimeNs> rtt, uint32_t packets) {
  if (rtt) {
    estimator_.sample(*rtt);
    shortest_ns_ = shortest_ns_ == 0 ? *rtt : std::min(shortest_ns_, *rtt);
  } else {
    estimator_.ease();
  }
  put_off_ = false;
  if (window_ == 0) return Next::go_on;
  if (una == sent_end || window_ >= packets) {
    stop();
  } else if (una.after(probed_end_)) {
    return Next::probe;
  } else if (!for_data_) {
    window_ *= 2;
  } else if (una == probed_end_) {
    stop();
    return Next::resume;
  }
  return Next::go_on;
}

bool ProbeTimer::expire(TimeNs now, bool allowed) {
  deadline_ = kNever;  // sending a probe starts it anew
  if (!allowed) return false;
  put_off_ = !put_off_;
  if (put_off_) {
    deadline_ = now + estimator_.timeout_ns() / 4;
    return false;
  }
  estimator_.back_off();
  return true;
}

void ProbeTimer::begin(wire::Psn una, bool for_data) {
  window_ = 1;
  probed_end_ = una;
  for_data_ = for_data;
}

}  // namespace rocemu::transport
