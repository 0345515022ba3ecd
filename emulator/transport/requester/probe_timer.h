// Early retransmission: what a requester does when an answer is overdue by the measured round trip,
// long before the ACK timeout. The specification does not have it; to a responder a probe is a
// retransmission like any other (IBTA vol 1, 9.7.5.1 and 9.7.7).
//
// 1. The timer runs while the responder owes an answer, for RttEstimator::timeout_ns(), which each
//    probe doubles. Progress restarts it.
// 2. When it expires for the first time since there was progress, it waits a quarter longer: if the
//    NIC has been away from its core, the answer lies unread or unsent, and needs a moment in which
//    the NIC is known to run.
// 3. Then the oldest unacknowledged packet is sent again and asks for an ACK: a probe. It makes the
//    responder say how far it has got, be it because the packet is what it waits for or because it
//    is a duplicate.
// 4. The window is then one packet. Answers to what has been sent again since open it twofold each
//    time, until it is as large as it may be or nothing is in flight.
// 5. An answer to more than has been sent again may come from before the probe, which then was
//    needless, or may be the responder's word about a duplicate: the oldest packet that is now
//    unacknowledged is the next probe. So a needless one costs a packet for each ACK under way, and
//    not the window.
// 6. The answer to a READ or an atomic does not tell which copy of the request it answers: sending
//    goes on where it was.
// 7. Before the first round trip was measured the timer runs only with kManyPackets in flight, for
//    RttEstimator::kUnknownNs: a connection that begins on a path full of others' packets may lose
//    all it sends, and with it the measurements.
// 8. There is no probe during an RNR wait, when no answer was asked for, or with ACK timeout 0.
//    Probes cost no retry: when a request fails is up to the ACK timer and retry_count alone
//    (go_back_n.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "emulator/transport/requester/rtt_estimator.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

class ProbeTimer {
 public:
  // Next says what the requester is to do after an answer.
  enum class Next : uint8_t {
    go_on,   // nothing special
    probe,   // send the oldest unacknowledged packet again: begin()
    resume,  // go on behind everything that has ever been sent
  };

  TimeNs deadline() const { return deadline_; }
  bool knows_round_trip() const { return estimator_.known(); }
  // The shortest round trip of all: what answers a packet does not come sooner. 0: none is known.
  TimeNs shortest_ns() const { return shortest_ns_; }

  // The number of packets that may be in flight, of the `packets` that congestion control allows.
  uint32_t window(uint32_t packets) const {
    return window_ == 0 ? packets : std::min(window_, packets);
  }

  // A packet that ends before `end` was sent. `answered`: the responder will say something about
  // it. `in_flight`: packets, this one among them.
  void on_sent(TimeNs now, wire::Psn end, bool answered, uint32_t in_flight) {
    if (window_ != 0 && end.after(probed_end_)) probed_end_ = end;
    if (answered && deadline_ == kNever) restart(now, true, in_flight);
  }

  // Everything before `una` has been answered, and `sent_end` is the PSN after the newest ever
  // sent. `rtt`: the round trip, when one was measured. `packets`: as for window(). To be followed
  // by restart(), once the requester has done what is returned.
  Next on_progress(wire::Psn una, wire::Psn sent_end, std::optional<TimeNs> rtt, uint32_t packets);

  // The timer begins anew, or ends when the responder owes no answer.
  void restart(TimeNs now, bool answer_owed, uint32_t in_flight) {
    const bool runs = answer_owed && (estimator_.known() || in_flight >= kManyPackets);
    deadline_ = runs ? now + estimator_.timeout_ns() : kNever;
  }

  // The deadline has passed. True: a probe is to be sent now, by begin(). `allowed`: there is an
  // ACK timeout.
  bool expire(TimeNs now, bool allowed);

  // A probe from `una` on is about to be sent. `for_data`: it is of a READ or an atomic.
  void begin(wire::Psn una, bool for_data);

  // Stops the timer and lifts its limit on the window: the ACK timer or the RNR timer waits now, or
  // none does.
  void stop() {
    deadline_ = kNever;
    window_ = 0;
  }

 private:
  static constexpr uint32_t kManyPackets = 16;

  RttEstimator estimator_;
  TimeNs shortest_ns_ = 0;
  TimeNs deadline_ = kNever;
  uint32_t window_ = 0;   // while what a probe began goes on; 0: none
  wire::Psn probed_end_;  // the PSN after the newest sent again since
  bool put_off_ = false;  // rule 2
  bool for_data_ = false;
};

}  // namespace rocemu::transport
