// Selective repeat: loss recovery as IRN has it (Mittal et al., "Revisiting Network Support for
// RDMA", SIGCOMM 2018), between two ends that both have it. The peer takes packets ahead of the
// expected one (responder/out_of_order.h) and says which; only what is missing is sent again.
//
// 1. It begins with the first answer in flight whose sender understands it (wire/selective.h);
//    until then go_back_n.h alone rules, and what is in flight by then cannot be placed ahead of
//    its turn: after a NAK all of it is sent again. Timers and retries of the specification stay
//    there: an ACK timeout costs one of retry_count, and then all that is out counts as lost.
// 2. Each PSN in flight is out, lost, arrived or answered (scoreboard.h). A SEND or WRITE that has
//    arrived may be asked for again as long as no answer acknowledges everything before it; its
//    request completes when one does. A PSN of a READ or an atomic is answered by its data, which
//    is in place then.
// 3. A request is lost when one that left after it has arrived. A READ response or an atomic's
//    answer is lost when a later answer has come: a responder answers in order. What was asked for
//    again is answered before all that was asked for later and for the first time, so that an
//    answer to that says that it is lost; so does one to what was asked for again later and behind
//    it. READs that have all their data do not keep new ones from starting, though they wait for an
//    older one (send_window.h, rule 5), so that there is something later. Where there is nothing,
//    it is lost when it takes longer than RTO_low.
// 4. With multipath what rule 3 finds counts only when it is still so a round trip later: until
//    then packets may just have overtaken each other.
// 5. When nothing is heard for RTO_low, with kFewPackets out or less, or for RTO_high, with more,
//    the oldest packet counts as lost, and so do those that have been out as long, which nothing
//    later would tell of; of a READ's answer all of it that is out. Each time in a row doubles
//    both. They are configured, or else measured: what RttEstimator says, and three times that. As
//    a probe's (probe_timer.h), the timer waits a quarter longer first, for a NIC that has been
//    away from its core.
// 6. An RNR NAK says that its packet was dropped, and perhaps all that came behind it: where there
//    is no receive there is none for later SENDs either. What has left is lost, but for what the
//    peer says it has taken. Nothing is sent, and RTO rests, until the wait is over. A NAK of a
//    SEND that names nothing taken says that one behind it was dropped for want of a receive, and
//    so is what left behind it a round trip ago and more.
// 7. Of a READ whose request has arrived the lost PSNs alone are asked for again, by a READ request
//    for them: to the responder one that comes again (IBTA vol 1, 9.7.5.1), and the form that IRN's
//    NACKs for READ responses have here.
// 8. What congestion control allows to be in flight (the BDP-FC of IRN: limits.window_packets) is
//    what is out; losses and arrivals make room. No PSN is sent that is as many behind the oldest
//    as the scoreboard holds, which bounds the state of both ends. A loss alone is no reason to
//    send less, as it is with go-back-N, where it costs all that is in flight; an ACK timeout is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/time.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/requester/rtt_estimator.h"
#include "emulator/transport/requester/scoreboard.h"
#include "emulator/transport/requester/send_window.h"
#include "emulator/wire/headers.h"

namespace rocemu::transport {

class SelectiveRepeat {
 public:
  explicit SelectiveRepeat(const QpContext& context) : context_(context) {}

  bool active() const { return active_; }
  // The peer has it; from `una` to before `sent_end` is in flight.
  void begin(TimeNs now, SendWindow& window, wire::Psn una, wire::Psn sent_end);

  // Gives a request that starts now the number of the receive that it takes: receives are counted
  // from the beginning on.
  void prepare(SendWindow::Request& request) const { request.receive = receives_; }
  void on_started(const SendWindow::Request& request);
  // Packet number `index` of a request says where it belongs.
  static void describe_place(const SendWindow::Request& request, uint32_t index, uint32_t mtu_bytes,
                             wire::ExtendedHeaders& ext);

  // The functions below may be called only while selective repeat is active().
  Scoreboard& board() { return board_; }
  const Scoreboard& board() const { return board_; }
  // True when the packet with `psn`, lost or the next new one, may leave when `packets` may be out.
  bool may_send(wire::Psn psn, uint32_t packets) const;
  void on_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool awaits_answer);
  // The cursor has been set to something that was lost, and is to go back to the end.
  bool leaves_end() const { return away_; }
  void note_cursor(bool at_end) { away_ = !at_end; }

  // After what an answer says has been noted.
  void find_losses(TimeNs now);
  // Gives up what stands behind `from` and would be known of if it had been taken: it left a round
  // trip ago, or with multipath, where some paths are longer, as long ago as a timeout.
  void give_up_older(TimeNs now, wire::Psn from) {
    const TimeNs known_ns =
        context_.limits.multipath ? estimator_.timeout_ns() : estimator_.smoothed_ns();
    if (estimator_.known() && known_ns <= now) board_.give_up_older(from + 1, now - known_ns);
  }
  // A copy that was sent since so long has hardly been answered yet.
  TimeNs copy_rtt_ns() const { return estimator_.smoothed_ns() / 4 * 3; }
  void on_round_trip(TimeNs rtt_ns);
  // The round trip that has been measured since the last call, if one was.
  std::optional<TimeNs> take_round_trip();

  // Data was put in place that no request announces yet, and may still turn out to be lost.
  void note_unsettled() { unsettled_ = true; }
  bool take_unsettled() { return std::exchange(unsettled_, false); }

  // Something was heard. `runs`: there is an ACK timeout, and no receiver is waited for.
  void restart_timer(TimeNs now, bool runs);
  TimeNs deadline() const { return std::min(rto_deadline_, reorder_deadline_); }
  // True: the oldest packet counts as lost now, since nothing was heard.
  bool on_timeout(TimeNs now);
  // A receiver is waited for: nothing is sent, and nothing counts as lost for that. It ends with
  // restart_timer().
  void pause_timer() { rto_deadline_ = kNever; }
  void stop_timers() { rto_deadline_ = reorder_deadline_ = kNever; }

 private:
  static constexpr uint32_t kFewPackets = 3;

  TimeNs oldest_deadline() const;
  TimeNs rto_low_ns() const;
  TimeNs rto_ns() const;

  const QpContext& context_;
  Scoreboard board_;
  bool active_ = false;
  bool away_ = false;
  bool unsettled_ = false;
  uint32_t receives_ = 0;         // messages started that take one
  Scoreboard::Evidence pending_;  // rule 4
  TimeNs reorder_deadline_ = kNever;
  RttEstimator estimator_;
  TimeNs rto_deadline_ = kNever;
  uint32_t backoffs_ = 0;
  bool put_off_ = false;
};

}  // namespace rocemu::transport
