// One port's transport: its QPs, their timers, and the turn they take at sending. Sans-IO: time and
// frames come in as parameters, frames and completions leave through the interfaces of
// host_interface.h.
//
// Not thread safe: one engine thread owns it. Completions are pushed before the call that caused
// them returns, and never before the data they announce has been moved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "emulator/transport/flow_table.h"
#include "emulator/transport/icrc_check.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/flow_report.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/interface/management.h"
#include "emulator/transport/interface/wait.h"
#include "emulator/transport/multicast_groups.h"
#include "emulator/transport/notification_point.h"
#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/deferred_completions.h"
#include "emulator/transport/qp/pacer.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/qp/tally.h"
#include "emulator/transport/qp_table.h"
#include "emulator/transport/sending_turns.h"
#include "emulator/transport/timer_queue.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class Endpoint {
 public:
  // `max_qps` bounds the QP table. `memory` and `events` outlive the endpoint.
  Endpoint(Memory& memory, EventSink& events, const TransportLimits& limits, uint32_t max_qps);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // QPNs of QPs that are made from now on are drawn at random; without this they are in order.
  void draw_qpns(uint64_t seed) { qps_.draw_numbers(seed); }

  // Makes a QP in state RESET. Empty when the table is full.
  std::optional<wire::Qpn> create(Service service, const QpResources& resources);
  std::optional<wire::Qpn> create_rc(const QpResources& resources) {
    return create(Service::rc, resources);
  }
  // The QP is gone without a completion for what was outstanding.
  void destroy(wire::Qpn qpn);

  // Moves a QP to `state`; the transition has been checked by the device. `attributes` holds all
  // attributes as they are after the change. To ERROR: everything outstanding is flushed.
  void modify(wire::Qpn qpn, QpState state, const QpAttributes& attributes);
  // Moves the QP to ERROR, for a cause outside the transport; everything outstanding is flushed.
  void fail(wire::Qpn qpn);
  // From now on the QP sends no faster than `limit`, whatever state it is in; unknown QPs are
  // ignored.
  void limit_rate(wire::Qpn qpn, const RateLimit& limit);
  // From now on the QP takes its requests from `queue`, and gives them back there; unknown QPs are
  // ignored. The old queue and the new one show the same requests.
  void use_send_queue(wire::Qpn qpn, SendQueue& queue);
  // The state now: ERROR may have come without a modify.
  QpState state(wire::Qpn qpn) const;
  // Returns MIGRATED for a QP that never was armed, and when there is none of that number.
  MigrationState migration_state(wire::Qpn qpn) const;
  // True while the send queue in state SQD still waits for answers.
  bool draining(wire::Qpn qpn) const;

  // Returns 0 when the QP has no timeout, or there is none of that number.
  TimeNs ack_timeout_ns(wire::Qpn qpn) const;

  QpLoad load(wire::Qpn qpn) const;
  // Returns what keeps the QP, as far as the transport knows (qp/wait_reason.h).
  WaitFacts wait_facts(TimeNs now, wire::Qpn qpn) const;

  // The groups tell where multicast datagrams go. The device bounds them; a QP that is destroyed is
  // detached.
  MulticastGroups& multicast_groups() { return multicast_groups_; }

  // The flows tell which raw packet QPs get a frame (flow_table.h). The device bounds them, and
  // removes those of a QP before it destroys the QP.
  FlowTable& flows() { return flows_; }

  // Frames as they come off the port. They are parsed, their ICRC is checked, what is not ours or
  // not whole is counted and dropped. The bytes must stay valid for the length of the call. `icrc`
  // is that of all of them; one that is owed is not looked at. Precondition for such frames: there
  // are no flows.
  // `runs`: what each frame is as a run; empty: none is one.
  void on_frames(TimeNs now, std::span<const std::span<const std::byte>> frames,
                 Icrc icrc = Icrc::there, std::span<const ReceivedRun> runs = {});
  // A program posted: to the send queue of a QP, or to the receive queue of one that is in ERROR.
  void on_doorbell(wire::Qpn qpn);
  // Completes with a flush error what stands in the queues of a QP in ERROR, so much at once as a
  // turn has time for; transmit() goes on with the rest.
  void flush_posted(wire::Qpn qpn);
  // Deadlines that have passed. `answers_by`: when all answers that have arrived will have been
  // handed over by on_frames(), where some may not have been: no ACK timeout is over before.
  void on_timeout(TimeNs now, TimeNs answers_by = 0);
  // Builds and sends at most `max_packets`; returns how many were sent.
  unsigned transmit(TimeNs now, FrameSink& sink, unsigned max_packets);

  // True when programs have got back by errors, since the last call, what runs under way may have
  // lent: whoever carries such takes it before the completions are shown.
  bool take_given_back() { return deferred_.take_given_back(); }

  bool wants_transmit() const {
    return !turns_.empty() || deferred_.flushes_wait() || !notification_.empty();
  }
  // The time at which on_timeout() has to be called at the latest; kNever when nothing waits.
  TimeNs next_deadline() const { return std::min(timers_.next_deadline(), next_send()); }
  // Of those deadlines the earliest at which a QP may go on that its rate held back; kNever: there
  // is none. It does not move away as others mostly do, and who comes late for it makes the QP
  // slower than its rate.
  TimeNs next_send() const { return paced_.next_deadline(); }

  // Without a sink, what comes for QP1 is dropped. The sink outlives the endpoint.
  void set_management(ManagementSink* sink) { management_ = sink; }

  // Counts of the port, from its beginning on, and of a QP, from its making on (all 0 if there is
  // none of that number).
  const Counters& counters() const { return tally_.counters; }
  Counters counters(wire::Qpn qpn) const;
  // Counts a completion that was a success until it had left the endpoint; unknown QPs are ignored.
  void note_late_error(const Completion& completion);
  // The flows that an algorithm decides over, at most `most` of them.
  std::vector<FlowReport> report_flows(TimeNs now, size_t most) const;
  // The loss recovery of each QP, of `most` QPs at most; empty unless selective repeat is
  // configured.
  std::vector<RecoveryReport> report_recoveries(size_t most) const;
  // The rate that an algorithm allows the QP now; nothing when none decides.
  std::optional<uint64_t> allowed_rate_bps(wire::Qpn qpn) const;
  // Without an observer, events are counted only. The observer outlives the endpoint.
  void set_observer(Observer* observer) {
    tally_.observer = observer;
    deferred_.set_observer(observer);
  }
  Observer* observer() const { return tally_.observer; }
  const TransportLimits& limits() const { return limits_; }
  uint32_t qp_count() const { return qps_.size(); }

 private:
  void touch(Qp& qp);
  void receive(Qp& qp, TimeNs now, const wire::Packet& packet);
  void receive_landing(Qp& qp, TimeNs now, const wire::Packet& packet, const Landing& landing);
  void receive_lent(Qp& qp, TimeNs now, wire::Packet& packet, const ReceivedRun& run);
  void watch(Qp& qp);
  void watch_for(Qp& qp, TimeNs deadline);
  TimeNs paced_until(const Qp& qp, TimeNs now) const;
  Turn transmit_share(Qp& qp, TimeNs now);
  Turn transmit_paced_share(Qp& qp, TimeNs now);
  Turn transmit_frame(Qp& qp, TimeNs now);
  bool on_congestion(Qp& qp, TimeNs now, const wire::Packet& packet);
  void send_cnps();
  void tell_waits(TimeNs now);
  void deliver_multicast(TimeNs now, const wire::Packet& packet);
  bool steer(std::span<const std::byte> frame);
  bool takes_whole(const Qp& qp, const wire::Packet& run) const;
  bool to_management(const wire::Packet& packet);

  Memory& memory_;
  EventSink& events_;
  TransportLimits limits_;
  PortTally tally_;
  DeferredCompletions deferred_;
  KnownPaths paths_;
  TimerQueue timers_;
  TimerQueue paced_;  // which of those are of QPs that their rate held back
  Burst burst_;
  QpTable qps_;

  ManagementSink* management_ = nullptr;
  MulticastGroups multicast_groups_;
  FlowTable flows_;
  IcrcCheck icrc_check_;
  std::vector<Qp*> turns_over_;  // in this transmit call, while somebody is told what they wait for
  std::vector<Qp*> answering_;   // QPs that packets have come for since the last transmit call
  SendingTurns<Qp> turns_;       // QPs that may have something to send
  TimeNs short_bursts_until_ = 0;
  NotificationPoint notification_;
};

}  // namespace rocemu::transport
