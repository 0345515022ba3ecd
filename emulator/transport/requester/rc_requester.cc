#include "emulator/transport/requester/rc_requester.h"

#include <new>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/requester/local_request.h"

namespace rocemu::transport {

using wire::Operation;

namespace {

// A program that posts them without end is not to keep the engine from its other work.
constexpr uint32_t kLocalRequestsInATurn = 64;

// One packet of a request, or a run of them, before it has its BTH.
struct RequestPacket {
  Operation operation{};
  wire::ExtendedHeaders ext;
  uint32_t payload_bytes = 0;
  uint32_t psns = 1;
  bool last = true;  // the last packet of its message
};

// Fills in so many packets of a SEND or WRITE, from number `index` on.
void describe_message(const SendWindow::Request& request, uint32_t index, uint32_t packets,
                      uint32_t mtu, RequestPacket& packet) {
  const SendWork& work = request.work;
  const bool first = index == 0;
  packet.last = index + packets == request.packets;
  packet.operation = message_operation(work.opcode, first, packet.last);
  packet.payload_bytes = std::min(packets * mtu, work.length_bytes - index * mtu);
  packet.psns = packets;
  if (first) packet.ext.reth = {work.remote_address, work.rkey, work.length_bytes};
  packet.ext.immediate = work.immediate;
  packet.ext.invalidate = work.rkey;
}

// So many packets of a request, from number `index` on; of a READ: what asks for its response from
// there on.
RequestPacket request_packet(const SendWindow::Request& request, uint32_t index, uint32_t packets,
                             uint32_t mtu) {
  const SendWork& work = request.work;
  RequestPacket packet;
  switch (work.opcode) {
    case WorkOpcode::read: {
      const uint32_t offset = index * mtu;
      packet.operation = Operation::read_request;
      packet.ext.reth = {work.remote_address + offset, work.rkey, work.length_bytes - offset};
      packet.psns = request.packets - index;
      break;
    }
    case WorkOpcode::compare_swap:
      packet.operation = Operation::compare_swap;
      packet.ext.atomic = {work.remote_address, work.rkey, work.swap, work.compare_add};
      break;
    case WorkOpcode::fetch_add:
      packet.operation = Operation::fetch_add;
      packet.ext.atomic = {work.remote_address, work.rkey, work.compare_add, 0};
      break;
    case WorkOpcode::atomic_write:
      packet.operation = Operation::atomic_write;
      packet.payload_bytes = kAtomicBytes;
      packet.ext.reth = {work.remote_address, work.rkey, kAtomicBytes};
      break;
    case WorkOpcode::flush:
      packet.operation = Operation::flush;
      packet.ext.feth = work.feth;
      packet.ext.reth = {work.remote_address, work.rkey, work.flush_bytes};
      break;
    default:
      describe_message(request, index, packets, mtu, packet);
      break;
  }
  packet.ext.xrc_srq = work.remote_srq;
  return packet;
}

}  // namespace

void RcRequester::reset() {
  window_.reset();
  recovery_.reset();
  congestion_ = congestion::AdaptiveWindow(context_.limits.window_packets, context_.qpn.value);
  round_trip_ = {};
  probe_ = {};
  pace_ = {};
  selective_.reset();
  end_.reset();
}

void RcRequester::start() {
  window_.start();
  recovery_.start();
  join_path();
  if (context_.limits.recovery == Recovery::selective_repeat)
    selective_ = std::make_unique<SelectiveRepeat>(context_);
}

// An algorithm that the device has chosen goes by round trips of its own, and so does a QP for
// which there is no memory: a packet may have made it migrate, and is not to fail for that.
void RcRequester::join_path() {
  if (context_.flow != nullptr) return;
  const Path& path = context_.attributes.path;
  try {
    congestion_.join(context_.paths.between(path.local_gid, path.remote_gid));
  } catch (const std::bad_alloc&) {
    congestion_.join(nullptr);
  }
}

// What is measured now began on another path, whose answers may still come: a copy would be taken
// for what they answer.
void RcRequester::change_path() {
  join_path();
  round_trip_.on_sending_again(false);
  if (repeats_selectively()) selective_->board().forget_times();
}

void RcRequester::on_attributes_changed(bool of_another_path) {
  // A READ or atomic that waits for a turn that never comes fails as if it were posted now
  // (find_fault).
  for (uint32_t i = 0; i < window_.size() && context_.attributes.max_rd_atomic == 0; ++i) {
    Request& request = window_[i];
    if (!request.started && is_read_or_atomic(request.work.opcode) &&
        request.work.fault == WcStatus::success)
      request.work.fault = WcStatus::local_qp_operation_error;
  }
  recovery_.on_attributes_changed();
  if (of_another_path) change_path();
}

// The checks come in the order in which hardware makes them.
WcStatus RcRequester::find_fault(const SendWork& work) const {
  if (work.opcode == WorkOpcode::tso) return WcStatus::local_qp_operation_error;
  if (is_read_or_atomic(work.opcode) && context_.attributes.max_rd_atomic == 0)
    return WcStatus::local_qp_operation_error;
  const bool is_rc_alone =
      work.opcode == WorkOpcode::atomic_write || work.opcode == WorkOpcode::flush;
  if (is_rc_alone && context_.transport != wire::Transport::rc)
    return WcStatus::local_qp_operation_error;
  const uint32_t access = brings_data(work.opcode) ? kLocalWrite : kLocalRead;
  return may_use(context_, work, access) ? WcStatus::success : WcStatus::local_protection_error;
}

bool RcRequester::may_start(const Request& request) const {
  if (request.started) return true;
  if (waits_for_fence(request)) return false;
  return !is_read_or_atomic(request.work.opcode) ||
         window_.owed_rd_atomics() < context_.attributes.max_rd_atomic;
}

Turn RcRequester::transmit(TimeNs now, Burst& burst) {
  if (context_.state != QpState::ready_to_send && context_.state != QpState::send_queue_drain)
    return Turn::idle;
  if (recovery_.waits_for_receiver()) return Turn::idle;
  if (repeats_selectively()) [[unlikely]]
    steer();
  for (uint32_t i = 0; i < kLocalRequestsInATurn; ++i) {
    const Turn turn = transmit_next(now, burst);
    if (turn != Turn::later) return turn;
  }
  return Turn::later;
}

// False: as many packets are in flight as may be.
inline bool RcRequester::has_room_for(wire::Psn psn) const {
  if (repeats_selectively()) [[unlikely]]
    return selective_->may_send(psn, packets_allowed());
  const uint32_t in_flight = recovery_.in_flight_before(psn);
  if (selective_ && in_flight >= Scoreboard::kMaxPsns) return false;  // more could not be noted
  return in_flight < packets_allowed();
}

void RcRequester::add_facts(TimeNs now, WaitFacts& facts) const {
  window_.add_facts(facts);
  facts.window_packets = packets_allowed();
  facts.retries = recovery_.retries();
  facts.rnr_left_ns = recovery_.receiver_wait_ns(now);
  if (!window_.empty())
    facts.oldest_age_ns = std::max(now, window_.oldest().taken_ns + 1) - window_.oldest().taken_ns;
  if (pace_.deadline() != kNever && pace_.deadline() > now)
    facts.pace_left_ns = pace_.deadline() - now;
  if (facts.next != WaitFacts::Next::packet) return;
  const Request& next = window_.current();
  facts.window_is_full = !has_room_for(next.first_psn + window_.current_packet());
  if (next.started) return;
  facts.fenced = waits_for_fence(next);
  facts.reads_are_full = !facts.fenced && !may_start(next);
}

// `later`: a local request was executed, and the next one may be looked at.
Turn RcRequester::transmit_next(TimeNs now, Burst& burst) {
  // The window also bounds how many requests are taken off the queue.
  if (window_.at_end() &&
      !window_.take_next(now, [this](const SendWork& work) { return find_fault(work); })) {
    window_.note_drained();
    return Turn::idle;
  }
  Request& request = window_.current();
  if (request.work.fault != WcStatus::success) {
    if (window_.at_oldest()) fail_oldest(request.work.fault);
    return Turn::idle;
  }
  if (is_local(request.work.opcode)) return take_local_turn(request.work);
  const wire::Psn psn = request.first_psn + window_.current_packet();
  if (!has_room_for(psn)) return Turn::idle;
  if (!may_start(request) || !pace_.allows(now)) return Turn::idle;
  if (selective_ && !request.started) [[unlikely]]
    selective_->prepare(request);
  return send_packet(now, burst, request);
}

// Local requests wait until all before them are over, which is more than binding asks for and what
// a local invalidate needs (IBTA vol 1, 10.8.3.3).
Turn RcRequester::take_local_turn(const SendWork& work) {
  if (!window_.at_oldest()) return Turn::idle;
  const WcStatus status = execute_local(context_, work);
  if (status != WcStatus::success) {
    fail_oldest(status);
    return Turn::idle;
  }
  window_.complete_oldest(WcStatus::success);
  return Turn::later;
}

// The number of packets of the current request that may leave as a run; 1: none.
uint32_t RcRequester::run_packets(const Burst& burst, const Request& request) const {
  const uint32_t rest = request.packets - window_.current_packet();
  if (rest < 2 || !context_.may_run() || congestion_.spaces_out() ||
      is_read_or_atomic(request.work.opcode))
    return 1;
  const wire::Psn psn = request.first_psn + window_.current_packet();
  const uint32_t room = packets_allowed() - recovery_.in_flight_before(psn);
  return std::min({rest, room, burst.run_packets(context_.attributes.path_mtu_bytes)});
}

Turn RcRequester::send_packet(TimeNs now, Burst& burst, const Request& request) {
  if (const uint32_t packets = run_packets(burst, request); packets > 1) {
    const Turn turn = send_packets(now, burst, request, packets);
    if (turn != Turn::no_buffer) return turn;
  }
  return send_packets(now, burst, request, 1);
}

// `packets`: more than one leave as a run.
Turn RcRequester::send_packets(TimeNs now, Burst& burst, const Request& request, uint32_t packets) {
  const SendWork& work = request.work;
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t index = window_.current_packet();
  RequestPacket packet = request_packet(request, index, packets, mtu);
  const bool answered_by_itself = is_read_or_atomic(work.opcode);

  wire::Bth bth;
  bth.opcode = wire::bth_opcode(context_.transport, packet.operation);
  bth.mig_req = context_.migration.migrated();
  bth.pkey = context_.attributes.pkey;
  bth.destination_qp = context_.attributes.remote_qpn;
  bth.psn = request.first_psn + index;
  bth.ack_request =
      !answered_by_itself &&
      (packet.last || recovery_.wants_ack(bth.psn + (packets - 1), packets_to_acknowledge()));
  // Solicited events belong to messages that consume a receive (IBTA vol 1, 9.2.3).
  bth.solicited =
      !answered_by_itself && packet.last && work.solicited && work.opcode != WorkOpcode::write;

  bth.reserved7 = context_.limits.offer();
  uint32_t place_bytes = 0;
  if (repeats_selectively()) [[unlikely]]
    place_bytes = shape_selectively(request, index, bth, packet.ext, packet.psns);
  ControlledFlow* const flow = context_.flow.get();
  const uint32_t telemetry_bytes =
      flow == nullptr || answered_by_itself ? 0 : flow->telemetry_bytes();
  const Path& path = context_.attributes.path;
  std::byte* payload = packets > 1 ? burst.add_run(context_.qp, Side::requester, path, bth,
                                                   packet.ext, packet.payload_bytes, packets, mtu)
                                   : burst.add(context_.qp, Side::requester, path, bth, packet.ext,
                                               place_bytes + packet.payload_bytes, telemetry_bytes);
  if (payload == nullptr) return Turn::no_buffer;
  if (telemetry_bytes != 0) [[unlikely]]
    flow->write_telemetry(burst.added_telemetry());
  if (bth.reserved7 != 0) [[unlikely]]
    payload = finish_selectively(burst, request, bth, packet.ext, payload);
  if (packet.payload_bytes > 0 &&
      !gather(context_, burst, work, index * mtu, packet.payload_bytes, payload)) {
    // The frame is in the burst already: let it fail as if the memory could not be read.
    burst.discard_added();
    return Turn::idle;
  }
  if (work.opcode == WorkOpcode::read) offer_landing(burst, request);
  window_.start_current();
  note_sent(now, bth.psn, packet.psns, bth.ack_request || answered_by_itself, burst.added_bytes());
  return Turn::sent;
}

// The data of a READ may be put where it belongs by the responder itself, in answer to its first
// request: that answer ends where the READ is asked for again (ResponseQueue).
void RcRequester::offer_landing(Burst& burst, const Request& request) const {
  const SendWork& work = request.work;
  if (request.started || request.packets < 2 || !context_.may_run() || !burst.lends() ||
      work.sges.view().size() != 1)
    return;
  const Sge& sge = work.sges.view().front();
  MemoryRange range;
  if (context_.memory.check_local(domain_of(context_, work), sge.lkey, sge.address,
                                  work.length_bytes, kLocalWrite, range))
    burst.offer_landing(range);
}

// The packet at the cursor has been added to the burst, or a run that begins with it.
inline void RcRequester::note_sent(TimeNs now, wire::Psn psn, uint32_t packets, bool answered,
                                   uint32_t bytes) {
  const wire::Psn end = psn + packets;
  const bool again = recovery_.on_sent(now, psn, end, answered);
  if (again) note_again(psn, packets);
  round_trip_.on_sent(now, psn, end, again, answered);
  if (repeats_selectively()) [[unlikely]] {
    selective_->on_sent(now, psn, end, is_read_or_atomic(window_.current().work.opcode));
  } else {
    probe_.on_sent(now, end, answered, recovery_.in_flight());
  }
  congestion_.on_sent(now, packets);
  if (context_.flow != nullptr) [[unlikely]]
    context_.flow->on_request_sent(now, psn, packets, again, bytes);
  pace_.on_sent(now, packet_interval_ns());
  window_.advance(packets);
}

// A READ that is asked for again is one packet, whatever it asks for.
void RcRequester::note_again(wire::Psn psn, uint32_t packets) {
  const bool is_run = packets > 1 && !is_read_or_atomic(window_.current().work.opcode);
  context_.tally.note_packets(TraceEvent::retransmitted, psn.value(), is_run ? packets : 1);
}

void RcRequester::on_fetch_failed(wire::Psn psn) {
  if (context_.state == QpState::error) return;
  if (window_.note_unreadable(psn)) fail_oldest(WcStatus::local_protection_error);
}

void RcRequester::flush() {
  window_.flush();
  recovery_.stop_timers();
  probe_.stop();
  pace_.stop();
  if (selective_) selective_->stop_timers();
}

}  // namespace rocemu::transport
