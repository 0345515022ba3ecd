// Early retransmission: what the requester does when an answer is overdue by the measured round
// trip, long before the ACK timeout.
//
// One packet, the oldest unacknowledged one, is sent again and asks for an ACK: a probe. It makes
// the responder say how far it has got, be it because the packet is what it waits for or because it
// is a duplicate. Answers to what has been sent again since open the window twofold each time. An
// answer to more than that may come from before the probe, which then was needless, or may be the
// responder's word about a duplicate: the oldest packet that is now unacknowledged is the next
// probe. So a needless one costs a packet for each ACK under way, and not the window. The answer to
// a READ or an atomic does not tell which copy of the request it answers: sending goes on where it
// was.
//
// No probe before the first round trip was measured, during an RNR wait, when no answer was asked
// for, or with timeout 0. Each doubles the time to the next (rtt_estimator.h).
#include <algorithm>

#include "base/time.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/requester/rc_requester.h"

namespace rocemu::transport {

uint32_t RcRequester::window() const {
  const uint32_t limit = window_.packets(context_.limits.window_packets);
  return probe_window_ == 0 ? limit : std::min(probe_window_, limit);
}

// A packet has been added to the burst; `answered`: the responder will say something about it.
void RcRequester::note_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool answered) {
  if (probe_window_ != 0 && end.after(probed_end_)) probed_end_ = end;
  const bool again = psn.before(sent_end_);
  if (again && psn.before(timed_end_) && !end.before(timed_end_)) timed_since_ = kNever;
  if (!answered) return;
  ack_asked_ = end;
  if (timed_since_ == kNever && !again) {
    timed_since_ = now;
    timed_end_ = psn + 1;
  }
  if (probe_deadline_ == kNever && rtt_.known()) probe_deadline_ = now + rtt_.timeout_ns();
}

// una_ has moved on from `before`.
void RcRequester::note_progress(TimeNs now, wire::Psn before) {
  window_.on_acknowledged(static_cast<uint32_t>(una_.distance_from(before)),
                          context_.limits.window_packets);
  if (timed_since_ != kNever && !una_.before(timed_end_)) {
    rtt_.sample(now - timed_since_);
    timed_since_ = kNever;
  } else {
    rtt_.ease();
  }
  probe_put_off_ = false;
  if (probe_window_ != 0) {
    if (una_ == sent_end_ || probe_window_ >= window_.packets(context_.limits.window_packets)) {
      stop_probing();
    } else if (una_.after(probed_end_)) {
      send_probe();
    } else if (!probed_for_data_) {
      probe_window_ *= 2;
    } else if (una_ == probed_end_) {
      stop_probing();
      seek(sent_end_);
    }
  }
  const bool owed = ack_asked_.after(una_) && rnr_until_ == kNever;
  probe_deadline_ = owed && rtt_.known() ? now + rtt_.timeout_ns() : kNever;
}

void RcRequester::probe(TimeNs now) {
  if (context_.attributes.timeout == 0) {
    probe_deadline_ = kNever;
    return;
  }
  // If this NIC has been away from its core meanwhile, the answer lies unread or unsent: a moment
  // for it, in which the NIC is known to run.
  if (!probe_put_off_) {
    probe_put_off_ = true;
    probe_deadline_ = now + rtt_.timeout_ns() / 4;
    return;
  }
  ++context_.counters.early_retransmissions;
  rtt_.back_off();
  probe_deadline_ = kNever;  // sending starts it anew
  probe_put_off_ = false;
  send_probe();
}

void RcRequester::send_probe() {
  seek(una_);
  probe_window_ = 1;
  probed_end_ = una_;
  probed_for_data_ = !requests_.empty() && is_read_or_atomic(requests_.front().work.opcode);
}

void RcRequester::stop_probing() { probe_window_ = 0; }

}  // namespace rocemu::transport
