#include "emulator/transport/requester/selective_repeat.h"

#include <bit>

namespace rocemu::transport {

void SelectiveRepeat::begin(TimeNs now, SendWindow& window, wire::Psn una, wire::Psn sent_end) {
  active_ = true;
  constexpr uint32_t kFewest = 64;
  const uint32_t window_packets = std::min(context_.limits.window_packets, Scoreboard::kMaxPsns);
  board_.begin(una, std::bit_ceil(std::clamp(4 * window_packets, kFewest, Scoreboard::kMaxPsns)));
  for (uint32_t i = 0; i < window.size(); ++i) {
    const SendWindow::Request& request = window[i];
    const wire::Psn end = request.end_psn().before(sent_end) ? request.end_psn() : sent_end;
    wire::Psn psn = request.first_psn.before(una) ? una : request.first_psn;
    if (!request.sends_packets() || !psn.before(end)) continue;
    if (is_read_or_atomic(request.work.opcode)) {
      board_.on_sent(now, psn, end, true);
    } else {
      for (; psn != end; ++psn) board_.on_sent(now, psn, psn + 1, false);
    }
  }
  board_.note_plain();
  board_.forget_times();  // they left before `now`
  // Go-back-N was about to send it again.
  if (!window.at_end()) board_.give_up_from(window.current().first_psn + window.current_packet());
}

void SelectiveRepeat::on_started(const SendWindow::Request& request) {
  if (takes_receive(request.work.opcode)) ++receives_;
}

void SelectiveRepeat::describe_place(const SendWindow::Request& request, uint32_t index,
                                     uint32_t mtu_bytes, wire::ExtendedHeaders& ext) {
  const SendWork& work = request.work;
  if (is_send(work.opcode)) {
    ext.receive_place = {request.receive, index};
  } else {
    const uint32_t offset = index * mtu_bytes;
    ext.reth = {work.remote_address + offset, work.rkey, work.length_bytes - offset};
  }
}

bool SelectiveRepeat::may_send(wire::Psn psn, uint32_t packets) const {
  return board_.is_urgent(psn) || (board_.out() < packets && board_.has_room_for(psn));
}

void SelectiveRepeat::on_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool awaits_answer) {
  board_.on_sent(now, psn, end, awaits_answer);
  if (rto_deadline_ == kNever && context_.attributes.timeout != 0) rto_deadline_ = now + rto_ns();
}

void SelectiveRepeat::find_losses(TimeNs now) {
  if (!context_.limits.multipath) {
    board_.mark_lost(board_.evidence());
  } else if (reorder_deadline_ <= now || reorder_deadline_ == kNever) {
    if (reorder_deadline_ != kNever) board_.mark_lost(pending_);
    pending_ = board_.evidence();
    reorder_deadline_ = board_.would_lose(pending_) ? now + estimator_.smoothed_ns() : kNever;
  }
  if (oldest_deadline() <= now) board_.give_up(board_.una());
}

std::optional<TimeNs> SelectiveRepeat::take_round_trip() {
  const std::optional<TimeNs> rtt = board_.take_round_trip();
  if (rtt) on_round_trip(*rtt);
  return rtt;
}

void SelectiveRepeat::on_round_trip(TimeNs rtt_ns) { estimator_.sample(rtt_ns); }

TimeNs SelectiveRepeat::rto_low_ns() const {
  const TimeNs once_ns = context_.limits.rto_low_us != 0 ? TimeNs{context_.limits.rto_low_us} * 1000
                                                         : estimator_.timeout_ns();
  return std::min(RttEstimator::kCapNs, once_ns << backoffs_);
}

TimeNs SelectiveRepeat::rto_ns() const {
  if (board_.out() <= kFewPackets) return rto_low_ns();
  const TimeNs once_ns = context_.limits.rto_high_us != 0
                             ? TimeNs{context_.limits.rto_high_us} * 1000
                             : 3 * estimator_.timeout_ns();
  return std::min(RttEstimator::kCapNs, once_ns << backoffs_);
}

// The time at which the oldest packet counts as lost, whatever has come since it was sent.
TimeNs SelectiveRepeat::oldest_deadline() const {
  const std::optional<TimeNs> since = board_.oldest_out_since();
  if (!since) return kNever;
  return *since + (board_.oldest_is_copy() ? rto_low_ns() : rto_ns());
}

void SelectiveRepeat::restart_timer(TimeNs now, bool runs) {
  backoffs_ = 0;
  put_off_ = false;
  rto_deadline_ = runs && board_.in_flight() > 0 ? now + rto_ns() : kNever;
  if (runs) rto_deadline_ = std::min(rto_deadline_, std::max(now, oldest_deadline()));
}

bool SelectiveRepeat::on_timeout(TimeNs now) {
  if (reorder_deadline_ <= now) find_losses(now);
  if (rto_deadline_ > now) return false;
  put_off_ = !put_off_;
  if (put_off_) {
    rto_deadline_ = now + rto_low_ns() / 4;
    return false;
  }
  // What has been out as long as the oldest is as lost.
  const TimeNs out_since = now - std::min(now, rto_ns());
  constexpr uint32_t kMaxBackoffs = 12;
  backoffs_ = std::min(backoffs_ + 1, kMaxBackoffs);
  rto_deadline_ = kNever;  // sending starts it anew
  if (board_.in_flight() == 0) return false;
  board_.give_up(board_.una());
  if (board_.oldest_is_reached()) {
    board_.give_up_answers_of_oldest();
  } else {
    board_.give_up_older(board_.una(), out_since);
  }
  return true;
}

}  // namespace rocemu::transport
