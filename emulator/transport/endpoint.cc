#include "emulator/transport/endpoint.h"

#include <algorithm>

#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/qp/wait_reason.h"
#include "emulator/transport/service/raw_qp.h"
#include "emulator/transport/service/rc_qp.h"
#include "emulator/transport/service/uc_qp.h"
#include "emulator/transport/service/ud_qp.h"
#include "emulator/wire/mad.h"

namespace rocemu::transport {

namespace {

constexpr uint32_t kMaxMtuBytes = 4096;
// A burst that begins with so little of QPs that send little is not filled up with others' bulk:
// all of a burst is moved, and arrives, at once.
constexpr uint32_t kLightWeight = 4 * (Burst::kFrameWeight + kMaxMtuBytes);
// Once a QP has sent a small message or two, and has nothing left, bursts are short for a while:
// the round trip of such a message waits for two to four of them. What a burst costs besides its
// bytes, some microseconds of system calls, bulk then pays more often.
constexpr uint32_t kFewMessages = 2;
constexpr uint32_t kShortBurstWeight = 16 * (Burst::kFrameWeight + kMaxMtuBytes);
constexpr TimeNs kShortBurstsForNs = 1'000'000;

std::unique_ptr<Qp> make_qp(Service service, const EndpointParts& parts, wire::Qpn qpn,
                            const QpResources& resources) {
  switch (service) {
    case Service::rc:
      return std::make_unique<RcQp>(parts, wire::Transport::rc, qpn, resources);
    case Service::xrc_send:
    case Service::xrc_receive:
      return std::make_unique<RcQp>(parts, wire::Transport::xrc, qpn, resources);
    case Service::uc:
      return std::make_unique<UcQp>(parts, qpn, resources);
    case Service::ud:
      return std::make_unique<UdQp>(parts, qpn, resources);
    case Service::raw_packet:
      return std::make_unique<RawQp>(parts, qpn, resources);
  }
  return nullptr;
}

}  // namespace

Endpoint::Endpoint(Memory& memory, EventSink& events, const TransportLimits& limits,
                   uint32_t max_qps)
    : memory_(memory),
      events_(events),
      limits_(limits),
      burst_(memory),
      qps_(max_qps),
      turns_(limits.quantum_frames * (Burst::kFrameWeight + kMaxMtuBytes)),
      notification_(limits.congestion.notification) {}

Endpoint::~Endpoint() = default;

std::optional<wire::Qpn> Endpoint::create(Service service, const QpResources& resources) {
  const auto made = qps_.add([&](wire::Qpn qpn) {
    return make_qp(service, {memory_, events_, deferred_, tally_, limits_, paths_}, qpn, resources);
  });
  if (made && tally_.observer != nullptr) tally_.observer->on_created(*made, service);
  return made;
}

void Endpoint::destroy(wire::Qpn qpn) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return;
  if (tally_.observer != nullptr) tally_.observer->on_destroyed(qpn);
  deferred_.forget(*qp);
  multicast_groups_.detach_all(qpn);
  turns_.remove(*qp);
  if (qp->answering) std::erase(answering_, qp);
  timers_.cancel(qps_.slot_of(qpn));
  paced_.cancel(qps_.slot_of(qpn));
  qps_.remove(qpn);
}

void Endpoint::modify(wire::Qpn qpn, QpState state, const QpAttributes& attributes) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return;
  qp->modify(state, attributes);
  deferred_.flush(memory_);
  touch(*qp);
}

void Endpoint::fail(wire::Qpn qpn) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return;
  qp->enter_error();
  deferred_.flush(memory_);
}

void Endpoint::limit_rate(wire::Qpn qpn, const RateLimit& limit) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return;
  qp->limit_rate(limit);
  touch(*qp);
}

void Endpoint::use_send_queue(wire::Qpn qpn, SendQueue& queue) {
  if (Qp* qp = qps_.find(qpn)) qp->use_send_queue(queue);
}

QpState Endpoint::state(wire::Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  return qp == nullptr ? QpState::reset : qp->state();
}

MigrationState Endpoint::migration_state(wire::Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  return qp == nullptr ? MigrationState::migrated : qp->migration_state();
}

bool Endpoint::draining(wire::Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  return qp != nullptr && qp->draining();
}

TimeNs Endpoint::ack_timeout_ns(wire::Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  const uint8_t code = qp == nullptr ? uint8_t{0} : qp->ack_timeout_code();
  return code == 0 ? 0 : transport::ack_timeout_ns(code);
}

QpLoad Endpoint::load(wire::Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  return qp == nullptr ? QpLoad{} : qp->load();
}

WaitFacts Endpoint::wait_facts(TimeNs now, wire::Qpn qpn) const {
  const Qp* qp = qps_.find(qpn);
  return qp == nullptr ? WaitFacts{} : qp->wait_facts(now);
}

Counters Endpoint::counters(wire::Qpn qpn) const {
  Qp* qp = qps_.find(qpn);
  return qp == nullptr ? Counters{} : qp->tally().counters();
}

void Endpoint::note_late_error(const Completion& completion) {
  Qp* const qp = qps_.find(completion.qpn);
  if (qp == nullptr) return;
  const Side side = completion.opcode < WcOpcode::receive ? Side::requester : Side::responder;
  qp->tally().note(TraceEvent::completion_with_error, static_cast<uint32_t>(completion.status));
  note_failed_completion(qp->tally(), side, completion.status);
}

namespace {

bool tells_of_congestion(const wire::Packet& packet) {
  return wire::congestion_met(packet.ip) || packet.bth.opcode == wire::kCnpOpcode;
}

}  // namespace

void Endpoint::on_frames(TimeNs now, std::span<const std::span<const std::byte>> frames, Icrc icrc,
                         std::span<const ReceivedRun> runs) {
  wire::Packet packet;
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::span<const std::byte> frame = frames[i];
    const ReceivedRun run = runs.empty() ? ReceivedRun{} : runs[i];
    if (!flows_.empty() && steer(frame)) [[unlikely]] {
      tally_.note(TraceEvent::received);
      continue;
    }
    const wire::ParseError error = run.segment_bytes == 0
                                       ? wire::parse_frame(frame, packet)
                                       : wire::parse_run(frame, run.segment_bytes, packet);
    tally_.note(TraceEvent::received, 0, {}, packet.packets);
    if (error != wire::ParseError::none) {
      tally_.note(TraceEvent::malformed);
    } else if (icrc == Icrc::there && !icrc_check_.right(now, packet)) {
      tally_.note(TraceEvent::icrc_error);
    } else if (Qp* qp = qps_.find(packet.bth.destination_qp)) {
      if (run.lent != nullptr) {
        receive_lent(*qp, now, packet, run);
      } else if (run.landing.at != nullptr) {
        receive_landing(*qp, now, packet, run.landing);
      } else {
        receive(*qp, now, packet);
      }
    } else if (packet.bth.destination_qp == wire::kMulticastQpn) {
      deliver_multicast(now, packet);
    } else if (!to_management(packet)) {
      tally_.note(TraceEvent::no_qp, packet.bth.psn.value(), packet.bth.destination_qp);
    }
  }
  deferred_.flush(memory_);
}

// True when the frame has gone where it belongs. Flows are of raw packet QPs alone.
bool Endpoint::steer(std::span<const std::byte> frame) {
  return flows_.steer(frame, [&](wire::Qpn qpn, const Flow& flow, uint64_t number) {
    Qp* const qp = qps_.find(qpn);
    if (qp == nullptr) return;
    static_cast<RawQp*>(qp)->on_frame(frame, number, flow);
    touch(*qp);
  });
}

inline void Endpoint::receive(Qp& qp, TimeNs now, const wire::Packet& packet) {
  if (packet.packets > 1 && !takes_whole(qp, packet)) [[unlikely]] {
    for (uint32_t i = 0; i < packet.packets; ++i) receive(qp, now, wire::packet_of_run(packet, i));
    return;
  }
  qp.tally().note_packet(packet, packet.bth.psn.value());
  if (tells_of_congestion(packet) && on_congestion(qp, now, packet)) [[unlikely]]
    return touch(qp);
  qp.on_packet(now, packet);
  touch(qp);
  if (qp.answering) return;
  qp.answering = true;
  answering_.push_back(&qp);
}

// A run that is taken whole has its payload scattered and no more. Single packets are looked at in
// many places, so that theirs has to be there. What has gone is lost like a frame, and its sender
// finds that when it sends it again.
void Endpoint::receive_lent(Qp& qp, TimeNs now, wire::Packet& packet, const ReceivedRun& run) {
  packet.payload = {run.lent, packet.payload.size()};
  if (!takes_whole(qp, packet)) [[unlikely]] {
    if (!memory_.take_lent(packet.payload, run.room)) return;
    packet.payload = {run.room, packet.payload.size()};
    return receive(qp, now, packet);
  }
  if (!memory_.begin_lent(packet.payload, run.room)) return;
  receive(qp, now, packet);
  memory_.end_lent();
}

void Endpoint::receive_landing(Qp& qp, TimeNs now, const wire::Packet& packet,
                               const Landing& landing) {
  qp.bring_landing(landing);
  receive(qp, now, packet);
  qp.bring_landing({});
}

// Who is observed, and what a network has marked, is looked at packet by packet.
bool Endpoint::takes_whole(const Qp& qp, const wire::Packet& run) const {
  return tally_.observer == nullptr && !tells_of_congestion(run) && qp.takes_whole(run);
}

bool Endpoint::to_management(const wire::Packet& packet) {
  if (management_ == nullptr || packet.bth.destination_qp != wire::kGsiQpn ||
      packet.transport() != wire::Transport::ud ||
      packet.operation() != wire::Operation::send_only || packet.ext.deth.qkey != wire::kGsiQkey ||
      packet.payload.size() != wire::kMadBytes)
    return false;
  management_->on_mad(packet);
  return true;
}

void Endpoint::deliver_multicast(TimeNs now, const wire::Packet& packet) {
  tally_.note(TraceEvent::multicast_received, packet.bth.psn.value());
  for (const wire::Qpn member : multicast_groups_.members(packet.ip.destination)) {
    receive(*qps_.find(member), now, packet);
  }
}

void Endpoint::on_doorbell(wire::Qpn qpn) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return;
  if (qp->state() < QpState::send_queue_error) {
    touch(*qp);
  } else if (deferred_.may_flush_now()) {
    flush_posted(qpn);
  } else {
    deferred_.flush_later(*qp);
  }
}

void Endpoint::flush_posted(wire::Qpn qpn) {
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr || qp->state() < QpState::send_queue_error) return;
  qp->flush_posted();
  deferred_.flush(memory_);
}

void Endpoint::on_timeout(TimeNs now, TimeNs answers_by) {
  while (const auto slot = timers_.pop_due(now)) {
    Qp& qp = qps_.at_slot(*slot);
    if (qp.flow() != nullptr) [[unlikely]]
      qp.flow()->on_timer(now);
    if (qp.deadline() <= now) qp.on_timeout(now, answers_by);
    touch(qp);
  }
  // Who is still held back had a timer as well.
  while (paced_.pop_due(now)) {
  }
  deferred_.flush(memory_);
}

// After anything that may have given the QP something to send or moved its deadline.
inline void Endpoint::touch(Qp& qp) {
  turns_.add(qp);
  watch(qp);
}

// Makes sure that on_timeout comes in time. A deadline that has moved away is left standing: it
// costs one look when it comes.
inline void Endpoint::watch(Qp& qp) {
  const ControlledFlow* const flow = qp.flow();
  if (flow == nullptr) [[likely]] {
    watch_for(qp, qp.deadline());
  } else {
    watch_for(qp, std::min(qp.deadline(), flow->deadline()));
  }
}

void Endpoint::watch_for(Qp& qp, TimeNs deadline) {
  const uint32_t slot = qps_.slot_of(qp.qpn());
  if (deadline < timers_.deadline_of(slot)) timers_.schedule(slot, deadline);
}

inline Turn Endpoint::transmit_frame(Qp& qp, TimeNs now) {
  const uint32_t before = burst_.weight();
  const Turn turn = qp.transmit(now, burst_);
  qp.share_left -= std::min(qp.share_left, burst_.weight() - before);
  return turn;
}

// Sends the share of a QP with a rate, the program's or congestion control's, and no more than the
// rate allows.
Turn Endpoint::transmit_paced_share(Qp& qp, TimeNs now) {
  Pacer* const pacer = qp.pacer();
  ControlledFlow* const flow = qp.flow();
  Turn turn;
  do {
    if (pacer != nullptr && !pacer->may_send(now)) return Turn::paced;
    if (flow != nullptr && !flow->may_send(now)) return Turn::paced;
    turn = transmit_frame(qp, now);
    if (turn != Turn::sent) return turn;
    if (pacer != nullptr) pacer->on_sent(now, burst_.added_bytes());
    if (flow == nullptr) continue;
    flow->on_frame_sent(now, burst_.added_bytes());
    if (flow->wants_ecn()) burst_.mark_ecn_capable();
  } while (qp.share_left > 0 && !burst_.full());
  return turn;
}

// Precondition: its rate has just held the QP back. The program's is asked first.
TimeNs Endpoint::paced_until(const Qp& qp, TimeNs now) const {
  if (qp.pacer() != nullptr && !qp.pacer()->may_send(now)) return qp.pacer()->next_send();
  return qp.flow()->held_until();
}

// Sends at least one frame, and as many as the share of the QP allows.
Turn Endpoint::transmit_share(Qp& qp, TimeNs now) {
  if (qp.pacer() != nullptr || qp.flow() != nullptr) [[unlikely]]
    return transmit_paced_share(qp, now);
  Turn turn;
  do {
    turn = transmit_frame(qp, now);
  } while (turn == Turn::sent && qp.share_left > 0 && !burst_.full());
  return turn;
}

// After the burst, so that what has left was told before.
void Endpoint::tell_waits(TimeNs now) {
  for (const Qp* const qp : turns_over_)
    tally_.observer->on_turn_over(qp->qpn(), find_wait_reason(qp->wait_facts(now)));
  turns_over_.clear();
}

unsigned Endpoint::transmit(TimeNs now, FrameSink& sink, unsigned max_packets) {
  // One QP each time: its queues are as long as its program likes.
  if (Qp* qp = deferred_.take_to_flush()) flush_posted(qp->qpn());
  burst_.begin(sink, max_packets, tally_.observer == nullptr);
  if (!notification_.empty()) [[unlikely]]
    send_cnps();
  // Acknowledgements before others' data: a program that has got its message may be gone soon, and
  // its QP with it.
  for (Qp* qp : answering_) {
    qp->answering = false;
    qp->acknowledge(burst_);
  }
  answering_.clear();
  const uint32_t acknowledgements = burst_.weight();
  const bool tells = tally_.observer != nullptr && tally_.observer->wants_waits();
  const uint32_t most = now < short_bursts_until_ ? kShortBurstWeight : UINT32_MAX;
  bool at_line = false;
  while (!turns_.empty() && !burst_.full() && burst_.weight() - acknowledgements < most) {
    if (!at_line && turns_.at_line()) {
      at_line = true;
      const uint32_t sparse = burst_.weight() - acknowledgements;
      if (sparse != 0 && sparse <= kLightWeight) break;
    }
    Qp& qp = turns_.first();
    const uint32_t small_before = burst_.small_messages();
    const Turn turn = transmit_share(qp, now);
    if (turn == Turn::no_buffer) break;
    const uint32_t small = burst_.small_messages() - small_before;
    if (turn == Turn::idle && small != 0 && small <= kFewMessages)
      short_bursts_until_ = now + kShortBurstsForNs;
    // Its timer was started by what it sent.
    watch(qp);
    if (turn == Turn::sent) {
      turns_.first_goes_on();
    } else {
      turn == Turn::later ? turns_.put_first_aside() : turns_.remove_first();
      if (tells) [[unlikely]]
        turns_over_.push_back(&qp);
      if (turn == Turn::paced) [[unlikely]] {
        const TimeNs until = paced_until(qp, now);
        watch_for(qp, until);
        paced_.schedule(qps_.slot_of(qp.qpn()), until);
      }
    }
  }
  turns_.take_aside([&](Qp& qp) { touch(qp); });
  const unsigned sent = burst_.finish();
  if (tells) [[unlikely]]
    tell_waits(now);
  for (Qp* qp : burst_.failed_qps()) touch(*qp);
  deferred_.flush(memory_);
  return sent;
}

}  // namespace rocemu::transport
