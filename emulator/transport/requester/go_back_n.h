// Loss recovery of a reliable requester: which packets are in flight, when they count as lost, and
// from where they are sent again. This is go-back-N: whatever is missing, sending goes back to the
// oldest unacknowledged packet, since the responder keeps none that came out of order.
//
// 1. In flight are the packets from una(), the oldest PSN not acknowledged, to sent_end(), which
//    comes after the newest ever sent (IBTA vol 1, 9.7.2 and 9.7.7).
// 2. An ACK is asked for at the end of every message, at least every limits.ack_interval_packets,
//    twice in a window, so that it can move on, and when it is full.
// 3. Three things set the cursor of the send window back to una(): a NAK for a sequence error, at
//    once; an answer that shows that a READ response or an atomic's answer before it was lost
//    (implied NAK: once until there is progress); and the ACK timer (9.7.6). Each costs one of
//    retry_count. Progress gives them back, and so does an RNR NAK, which is an answer. A NAK that
//    comes before one can be drawn by the copy of its packet is of the same loss, and costs
//    nothing: the network has doubled it, or packets that were late have drawn it.
// 4. The ACK timer runs while something is in flight, and progress restarts it. With timeout 0
//    there is none, and nothing is sent again for want of an answer (9.7.6.1.3). An answer that has
//    arrived and was not looked at yet is no missing one: for it the timer runs on, up to the four
//    times the timeout that 9.7.6.1.3 allows.
// 5. An RNR NAK holds sending for the responder's time (9.7.5.2.8), and then sets the cursor back.
//    It costs one of rnr_retry, of which 7 means for ever; progress gives them back. Meanwhile the
//    ACK timer rests and other NAKs set nothing back: Linux sends a sequence NAK for the packet
//    behind an RNR NAK.
// 6. When retry_count is used up on one path, another may begin with all of it
//    (qp/path_migration.h).
// 7. A probe (probe_timer.h) sets the cursor back, too, and costs nothing.
//
// The requester tells it what was sent and what the answers acknowledge, and asks it what a NAK or
// a timeout means; the cursor is set back here and nowhere else. A recovery of another kind
// (selective repeat) has the same functions and sets the cursor to other packets.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/requester/send_window.h"

namespace rocemu::transport {

class GoBackN {
 public:
  GoBackN(const QpContext& context, SendWindow& window) : context_(context), window_(window) {}

  void reset();
  void start();  // to RTS: the first PSN is attributes.send_psn
  void on_attributes_changed();

  wire::Psn una() const { return una_; }
  wire::Psn sent_end() const { return sent_end_; }
  uint32_t in_flight() const { return in_flight_before(sent_end_); }
  bool is_in_flight(wire::Psn psn) const { return !psn.before(una_) && psn.before(sent_end_); }
  // The number of PSNs from una() to before `psn`.
  uint32_t in_flight_before(wire::Psn psn) const {
    return static_cast<uint32_t>(psn.distance_from(una_));
  }

  // True when the packet with `psn`, of a message that goes on behind it, asks for an ACK.
  // `window`: the number of packets that may be in flight.
  bool wants_ack(wire::Psn psn, uint32_t window) const {
    const auto since_asked = static_cast<uint32_t>((psn + 1).distance_from(ack_asked_));
    const uint32_t interval = std::min(context_.limits.ack_interval_packets, (window + 1) / 2);
    return since_asked >= interval || in_flight_before(psn + 1) >= window;
  }
  // A packet was sent that covers the PSNs from `psn` to before `end`. `answered`: the responder
  // will say something about it. True when `psn` had been sent before.
  bool on_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool answered) {
    const bool again = psn.before(sent_end_);
    if (answered) ack_asked_ = end;
    if (end.after(sent_end_)) sent_end_ = end;
    if (again && copied_at_ == kNever) copied_at_ = now;
    if (ack_deadline_ == kNever && context_.attributes.timeout != 0) start_ack_timer(now);
    return again;
  }

  // Everything before `psn` has been answered; on_progress() follows when all is known that one
  // packet acknowledges.
  void acknowledge(wire::Psn psn) { una_ = psn; }
  void on_progress(TimeNs now);
  bool answer_is_owed() const { return ack_asked_.after(una_) && !waits_for_receiver(); }

  // A READ response or an atomic's answer is missing. False: that is being dealt with.
  bool take_implied_nak();
  // Sets the cursor back for a loss. False: retry_count is used up.
  bool retry();
  // The oldest packet is about to be sent again after retry(), or was less than `rtt_ns` ago.
  bool copy_is_under_way(TimeNs now, TimeNs rtt_ns) const {
    return copy_ == una_ && (copied_at_ == kNever || now < copied_at_ + rtt_ns);
  }
  // Sets the cursor back for another path, where the retries are as many as at first.
  void begin_anew();
  // Begins the wait for a receiver. False: rnr_retry is used up. Precondition: none is under way.
  bool wait_for_receiver(TimeNs now, uint8_t timer_code);
  bool waits_for_receiver() const { return rnr_until_ != kNever; }
  // Returns how long the wait for a receiver goes on.
  TimeNs receiver_wait_ns(TimeNs now) const {
    if (!waits_for_receiver()) return 0;
    return rnr_until_ > now ? rnr_until_ - now : 1;
  }
  // Returns how often something was sent again since there was progress.
  uint32_t retries() const {
    const uint8_t most = context_.attributes.retry_count;
    return most > retries_left_ ? most - retries_left_ : 0;
  }

  // Both set the cursor: to the oldest packet in flight, or behind all that has ever been sent.
  void seek_oldest() { seek(una_); }
  void seek_end() { seek(sent_end_); }

  TimeNs deadline() const { return std::min(ack_deadline_, rnr_until_); }
  // The answer may have arrived and not been handed over before `until`: rule 4.
  void put_off(TimeNs until) { ack_deadline_ = std::max(ack_deadline_, std::min(until, ack_end_)); }
  // Ends a wait for a receiver. True: the ACK timeout is over, and retry() is to follow.
  bool on_timeout(TimeNs now);
  void stop_timers() { ack_deadline_ = rnr_until_ = kNever; }

 private:
  // Precondition: there is an ACK timeout.
  void start_ack_timer(TimeNs now) {
    const TimeNs timeout_ns = ack_timeout_ns(context_.attributes.timeout);
    ack_deadline_ = now + timeout_ns;
    ack_end_ = now + 4 * timeout_ns;
  }
  void seek(wire::Psn psn) {
    ack_asked_ = psn;
    window_.seek(psn);
  }

  const QpContext& context_;
  SendWindow& window_;
  wire::Psn una_;
  wire::Psn sent_end_;
  wire::Psn ack_asked_;            // the PSN after the newest packet with AckReq
  std::optional<wire::Psn> copy_;  // una_ at the last retry(), since when there was no progress
  TimeNs copied_at_ = 0;           // when it was sent again; kNever: not yet
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  uint8_t retry_count_ = 0;  // what the program has given last
  uint8_t rnr_retry_ = 0;
  bool implied_nak_taken_ = false;
  TimeNs ack_deadline_ = kNever;
  TimeNs ack_end_ = 0;         // when it is over at the latest
  TimeNs rnr_until_ = kNever;  // kNever: no wait for a receiver
};

}  // namespace rocemu::transport
