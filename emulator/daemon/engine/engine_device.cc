#include "emulator/daemon/engine/engine_device.h"

#include <algorithm>

#include "base/monotonic_clock.h"

namespace rocemu::daemon {

bool EngineDevice::turn(TimeNs now, TurnBudget& budget) {
  transport::Endpoint& endpoint = hca_->endpoint();
  ++turns_;
  // Before anything is received: a run of packets is no frame of a flow.
  if (touched_) follow_flows();
  bool busy = frames_.receive(now, endpoint, budget) != 0;
  patience_.on_turn(now, endpoint.next_deadline(), frames_.unread());
  if (endpoint.next_deadline() <= now) {
    endpoint.on_timeout(now, patience_.answers_by(now));
    busy = true;
  }
  // Before completions are shown: a program that answers at once does not overtake the ACK of what
  // it answers. Programs rely on that order, as perftest does with events (ib_send_lat -e). On a
  // switch that holds frames back that is so for each device.
  const unsigned sent = frames_.transmit(now, endpoint);
  budget.charge(sent);
  busy |= sent != 0;
  // Not all work moves frames: binds, invalidations and what is flushed complete without.
  busy |= hca_->has_news();
  if (busy || touched_ || hca_->next_held_event() <= now) {
    touched_ = false;
    withholds_ = endpoint.take_given_back();
    if (!withholds_) hca_->publish_completions(now);
  }
  return busy;
}

// Commands and the ends of programs make flows and destroy them.
void EngineDevice::follow_flows() noexcept {
  const bool wanted = !hca_->endpoint().flows().empty();
  if (wanted == wants_other_frames_) return;
  wants_other_frames_ = wanted;
  frames_.port().want_other_frames(wanted);
  frames_.port().want_single_frames(wanted);
}

DeviceSnapshot EngineDevice::snapshot() {
  transport::Endpoint& endpoint = hca_->endpoint();
  return {hca_->counts(),
          endpoint.counters(),
          frames_.port().stats(),
          endpoint.multicast_groups().groups(),
          endpoint.limits().congestion,
          endpoint.report_flows(monotonic_now_ns(), DeviceSnapshot::kMaxFlows),
          endpoint.report_recoveries(DeviceSnapshot::kMaxFlows),
          hca_->report_qps(monotonic_now_ns(), DeviceSnapshot::kMaxFlows)};
}

TimeNs EngineDevice::next_event() const {
  return std::min<TimeNs>(frames_.port().next_arrival_ns(), hca_->next_held_event());
}

}  // namespace rocemu::daemon
