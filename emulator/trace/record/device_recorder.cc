#include "emulator/trace/record/device_recorder.h"

#include <algorithm>
#include <utility>

#include "emulator/transport/interface/wait.h"
#include "emulator/transport/responder/refusals.h"

namespace rocemu::trace {

using transport::TraceEvent;
using verbs::QpState;
using wire::MessageKind;

namespace {

uint8_t qp_type(transport::Service service) {
  namespace type = verbs::qp_type;
  switch (service) {
    case transport::Service::rc:
      return type::kRc;
    case transport::Service::uc:
      return type::kUc;
    case transport::Service::ud:
      return type::kUd;
    case transport::Service::xrc_send:
      return type::kXrcSend;
    case transport::Service::xrc_receive:
      return type::kXrcReceive;
    case transport::Service::raw_packet:
      return type::kRawPacket;
  }
  return 0;
}

uint16_t flags_of(const transport::SendWork& work) {
  return static_cast<uint16_t>((work.signaled ? flag::kSignaled : 0) |
                               (work.solicited ? flag::kSolicited : 0) |
                               (work.fence ? flag::kFence : 0));
}

uint16_t flags_of(const wire::Packet& packet) {
  const wire::OpcodeTraits& traits = packet.traits();
  return static_cast<uint16_t>((packet.bth.ack_request ? flag::kAckRequest : 0) |
                               (packet.bth.solicited ? flag::kSolicited : 0) |
                               (wire::congestion_met(packet.ip) ? flag::kCongestion : 0) |
                               (traits.kind == MessageKind::response ? flag::kResponse : 0) |
                               (traits.aeth ? flag::kHasAeth : 0) |
                               (traits.reth || traits.atomic_eth ? flag::kHasReth : 0));
}

// Returns what keeps a QP from sending though it has something to send, or none.
Cause cause_of(transport::WaitReason reason) {
  using enum transport::WaitReason;
  switch (reason) {
    case state:
      return Cause::not_ready;
    case rnr:
      return Cause::rnr_wait;
    case window:
      return Cause::window;
    case fence:
      return Cause::fence;
    case reads:
      return Cause::rd_atomics;
    case earlier:
      return Cause::earlier;
    case pace:
      return Cause::pace;
    case rate_limit:
      return Cause::rate_limit;
    default:
      return Cause::none;
  }
}

// True when QPs of that type are told by the other end what is wrong with their packets.
bool answers(uint8_t type) {
  namespace of = verbs::qp_type;
  return type == of::kRc || type == of::kXrcSend || type == of::kXrcReceive;
}

bool is_receive(transport::WcOpcode opcode) { return opcode >= transport::WcOpcode::receive; }

}  // namespace

DeviceRecorder::DeviceRecorder(uint16_t device, Ring& ring, Filter filter, RecorderHost& host,
                               transport::Observer* next)
    : device_(device), ring_(ring), filter_(std::move(filter)), host_(host), next_(next) {}

// --- QPs ---

// Null when the QP is not traced, or there is none of that number.
DeviceRecorder::Qp* DeviceRecorder::find(wire::Qpn qpn) {
  if (last_qp_ == nullptr || last_qpn_ != qpn.value) [[unlikely]] {
    const auto found = qps_.find(qpn.value);
    if (found == qps_.end()) return nullptr;
    last_qpn_ = qpn.value;
    last_qp_ = &found->second;
    if (!last_qp_->is_resolved) resolve(qpn, *last_qp_);
  }
  return last_qp_->is_traced ? last_qp_ : nullptr;
}

// Finds out whose the QP is; its program is not known before its creation is over.
void DeviceRecorder::resolve(wire::Qpn qpn, Qp& qp) {
  const Owner owner = host_.owner_of(device_, qpn);
  qp.is_resolved = true;
  qp.program = owner.program;
  qp.is_traced = lets_through(filter_, qpn.value, owner.name, owner.pid);
  qp.pid = owner.pid;
  if (!qp.is_traced) return;
  qp.queues = host_.queues_of(device_, qpn);
  if (owner.program != kNoProgram && programs_.insert(owner.program).second)
    note_program(Kind::program_began, owner.program, Cause::none);
  record(creation(qpn.value, qp));
}

Record DeviceRecorder::creation(uint32_t qpn, const Qp& qp) const {
  Record record;
  record.kind = Kind::qp_created;
  record.time_ns = qp.created_ns;
  record.device = device_;
  record.qpn = qpn;
  record.program = qp.program;
  record.code = qp.type;
  record.count = qp.queues.send_cq;
  record.length_bytes = qp.queues.receive_cq;
  record.detail = qp.queues.srq;
  if (qp.queues.srq != 0) record.flags |= flag::kShared;
  if (qp.existed) record.flags |= flag::kExisted;
  return record;
}

Record DeviceRecorder::state_of(uint32_t qpn, const Qp& qp) const {
  Record record;
  record.kind = Kind::qp_state;
  record.device = device_;
  record.qpn = qpn;
  record.code = static_cast<uint8_t>(qp.state);
  record.peer_qpn = qp.peer.qpn;
  record.peer_device = qp.peer.device;
  record.length_bytes = qp.peer.path_mtu_bytes;
  record.count = qp.peer.timers.packed();
  return record;
}

void DeviceRecorder::set_attributes(Qp& qp, const transport::QpAttributes& attributes) {
  qp.peer.qpn = attributes.remote_qpn.value;
  qp.peer.gid = attributes.path.remote_gid;
  qp.peer.device = qp.peer.gid == wire::Gid{} ? kNoDevice : host_.device_of(qp.peer.gid);
  qp.peer.path_mtu_bytes = attributes.path_mtu_bytes;
  qp.peer.timers = {attributes.retry_count, attributes.rnr_retry, attributes.timeout};
  qp.peer.rnr_timer = attributes.min_rnr_timer;
}

void DeviceRecorder::add_known(const KnownQp& known) {
  Qp& qp = qps_[known.qpn.value];
  qp.existed = true;
  qp.type = qp_type(known.service);
  qp.created_ns = now_ = host_.now();
  qp.sends = RequestNumbers(known.requests_in_flight);
  qp.state = qp.state_before = known.state;
  qp.peer.qpn = known.peer_qpn.value;
  qp.peer.gid = known.peer_gid;
  if (qp.peer.gid != wire::Gid{}) qp.peer.device = host_.device_of(qp.peer.gid);
  qp.peer.path_mtu_bytes = known.path_mtu_bytes;
  qp.peer.timers = known.timers;
  qp.peer.rnr_timer = known.min_rnr_timer;
  if (find(known.qpn) == nullptr) return;
  Record state = state_of(known.qpn.value, qp);
  state.flags = flag::kExisted;
  state.time_ns = now_;
  record(state);
}

std::vector<Record> DeviceRecorder::describe_qps(std::span<const Record> kept) const {
  std::set<std::pair<uint32_t, TimeNs>> created;
  std::set<uint32_t> changed;
  for (const Record& record : kept) {
    if (record.kind == Kind::qp_created) created.emplace(record.qpn, record.time_ns);
    if (record.kind == Kind::qp_state) changed.insert(record.qpn);
  }
  std::vector<Record> records;
  for (const auto& [qpn, qp] : qps_) {
    if (!qp.is_resolved || !qp.is_traced || created.contains({qpn, qp.created_ns})) continue;
    Record state = state_of(qpn, qp);
    // Its change is told of among the others. Of several there the last alone is undone here.
    if (changed.contains(qpn)) state.code = static_cast<uint8_t>(qp.state_before);
    for (Record record : {creation(qpn, qp), state}) {
      record.time_ns = qp.created_ns;
      record.flags |= flag::kExisted;
      records.push_back(record);
    }
  }
  return records;
}

void DeviceRecorder::on_created(wire::Qpn qpn, transport::Service service) noexcept {
  if (next_ != nullptr) next_->on_created(qpn, service);
  Qp& qp = qps_[qpn.value];
  qp = Qp();
  last_qp_ = nullptr;
  qp.type = qp_type(service);
  qp.created_ns = host_.now();
}

void DeviceRecorder::on_destroyed(wire::Qpn qpn) noexcept {
  if (next_ != nullptr) next_->on_destroyed(qpn);
  now_ = host_.now();
  if (const Qp* const qp = find(qpn)) {
    if (Record* const record = begin(Kind::qp_destroyed, qpn)) {
      record->program = qp->program;
      end();
    }
  }
  last_qp_ = nullptr;
  qps_.erase(qpn.value);
}

void DeviceRecorder::on_state(wire::Qpn qpn, QpState state,
                              const transport::QpAttributes& attributes) noexcept {
  if (next_ != nullptr) next_->on_state(qpn, state, attributes);
  now_ = host_.now();
  Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  qp->state_before = qp->state;
  qp->state = state;
  if (state == QpState::reset) qp->sends.forget();
  if (state >= QpState::ready_to_receive && state != QpState::error)
    set_attributes(*qp, attributes);
  Record changed = state_of(qpn.value, *qp);
  changed.time_ns = now_;
  if (state == QpState::ready_to_receive) changed.psn = attributes.receive_psn.value();
  if (state == QpState::ready_to_send) changed.psn = attributes.send_psn.value();
  record(changed);
}

void DeviceRecorder::note_program(Kind kind, uint16_t program, Cause cause) {
  now_ = host_.now();
  if (Record* const record = begin(kind, {})) {
    record->program = program;
    record->cause = cause;
    end();
  }
}

void DeviceRecorder::on_context_end(uint32_t pid) {
  for (const auto& [qpn, qp] : qps_) {
    if (!qp.is_resolved || !qp.is_traced || qp.pid != pid || pid == 0) continue;
    note_program(Kind::program_ended, qp.program, Cause::by_death);
    return host_.on_failure(device_, wire::Qpn{qpn});
  }
}

// --- Records ---

void DeviceRecorder::record(Record made) {
  flush();
  made.device = device_;
  if (Record* const record = ring_.claim()) {
    *record = made;
    end();
  }
}

void DeviceRecorder::on_cm(const Record& made) {
  if (filter_.everything() || (made.qpn != 0 && find(wire::Qpn{made.qpn}) != nullptr)) record(made);
}

// Null when there is no room.
inline Record* DeviceRecorder::begin(Kind kind, wire::Qpn qpn) {
  if (acknowledged_.kind != Kind::none) [[unlikely]]
    flush();
  Record* const record = ring_.claim();
  if (record == nullptr) return nullptr;
  *record = {};
  record->time_ns = now_;
  record->kind = kind;
  record->qpn = qpn.value;
  record->device = device_;
  return record;
}

void DeviceRecorder::simple(Kind kind, wire::Qpn qpn, uint32_t psn, Cause cause, uint8_t code) {
  if (Record* const record = begin(kind, qpn)) {
    record->psn = psn & wire::Psn::kMask;
    record->cause = cause;
    record->code = code;
    end();
  }
}

// --- Packets ---

inline void DeviceRecorder::fill(Record& record, const wire::Packet& packet) const {
  const wire::OpcodeTraits& traits = packet.traits();
  record.psn = packet.bth.psn.value();
  record.opcode = packet.bth.opcode;
  record.length_bytes = static_cast<uint32_t>(packet.payload.size());
  record.flags = flags_of(packet);
  if (traits.aeth) {
    record.code = packet.ext.aeth.syndrome;
    record.count = packet.ext.aeth.msn;
  }
  if (traits.feth)
    record.code =
        static_cast<uint8_t>(packet.ext.feth.placement | packet.ext.feth.selectivity << 4);
  if (traits.reth) {
    record.value = packet.ext.reth.virtual_address;
    record.detail = packet.ext.reth.rkey.value;
    record.count = packet.ext.reth.length_bytes;
  } else if (traits.atomic_eth) {
    record.value = packet.ext.atomic.virtual_address;
    record.detail = packet.ext.atomic.rkey.value;
  }
}

void DeviceRecorder::on_packet(wire::Qpn qpn, const wire::Packet& packet) noexcept {
  if (next_ != nullptr) next_->on_packet(qpn, packet);
  Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  now_ = host_.now();
  const wire::OpcodeTraits& traits = packet.traits();
  const bool is_response = traits.kind == MessageKind::response;
  qp->arrived.note(packet);
  if (traits.aeth) qp->last_syndrome = packet.ext.aeth.syndrome;
  if (is_response) qp->timeouts = 0;
  qp->asked.note(packet);
  if (Record* const record = begin(Kind::packet_received, qpn)) {
    fill(*record, packet);
    record->peer_qpn = traits.deth ? packet.ext.deth.source_qp.value : qp->peer.qpn;
    record->peer_device = qp->peer.device;
    if (is_response) record->request = qp->sends.find(packet.bth.psn);
    end();
  }
}

void DeviceRecorder::on_frame_sent(wire::Qpn qpn, const transport::SentFrame& frame) noexcept {
  if (next_ != nullptr) next_->on_frame_sent(qpn, frame);
  Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  wire::Packet packet;
  if (frame.l3_offset_bytes == 0 ||
      wire::parse_frame(frame.bytes, packet) != wire::ParseError::none)
    return;
  now_ = host_.now();
  const bool again = !frame.is_response && qp->resends.take(packet.bth.psn);
  uint32_t request = 0;
  if (!frame.is_response) qp->sent_since = true;
  if (!frame.is_response)
    request = again ? qp->sends.find(packet.bth.psn)
                    : qp->sends.on_sent(packet.bth.psn, packet.traits().starts);
  if (Record* const record = begin(Kind::packet_sent, qpn)) {
    fill(*record, packet);
    record->peer_qpn = packet.bth.destination_qp.value;
    record->peer_device = qp->peer.device;
    record->request = request;
    if (again) {
      record->flags |= flag::kRetransmission;
      record->cause = qp->resends.cause();
    }
    end();
  }
}

// Says whether a QP's packets may go where this one does: QPNs of two devices may be equal, and a
// device may have several addresses, as for an alternate path.
bool DeviceRecorder::sends_to(const Qp& qp, const wire::Packet& packet) {
  if (!qp.is_traced || qp.peer.qpn != packet.bth.destination_qp.value) return false;
  const wire::Gid& to = packet.ip.destination;
  return qp.peer.gid == to ||
         (qp.peer.device != kNoDevice && qp.peer.device == host_.device_of(to));
}

// Finds whose a packet is that has left this device; null when nobody traced has sent it.
DeviceRecorder::Qp* DeviceRecorder::find_sender(const wire::Packet& packet, uint32_t& qpn) {
  if (packet.traits().deth) {
    qpn = packet.ext.deth.source_qp.value;
    return find(packet.ext.deth.source_qp);
  }
  if (last_qp_ != nullptr && sends_to(*last_qp_, packet)) {
    qpn = last_qpn_;
    return last_qp_;
  }
  for (auto& [number, qp] : qps_) {
    if (!sends_to(qp, packet)) continue;
    qpn = number;
    return &qp;
  }
  return nullptr;
}

void DeviceRecorder::on_lost(const wire::Packet& packet, uint16_t impairment, Cause cause,
                             bool arrives) {
  uint32_t qpn = packet.bth.destination_qp.value;
  const Qp* const qp = arrives ? find(packet.bth.destination_qp) : find_sender(packet, qpn);
  if (qp == nullptr) return;
  now_ = host_.now();
  Record* const record = begin(Kind::packet_lost, wire::Qpn{qpn});
  if (record == nullptr) return;
  fill(*record, packet);
  record->peer_qpn = arrives ? qp->peer.qpn : packet.bth.destination_qp.value;
  record->peer_device = qp->peer.device;
  record->cause = cause;
  record->program = impairment;
  if (arrives) record->flags |= flag::kArriving;
  const bool is_response = packet.traits().kind == MessageKind::response;
  if (!arrives && !is_response) record->request = qp->sends.find(packet.bth.psn);
  end();
}

void DeviceRecorder::on_fault_loss(std::span<const std::byte> frame, bool arrives) noexcept {
  if (next_ != nullptr) next_->on_fault_loss(frame, arrives);
  wire::Packet packet;
  if (wire::parse_frame(frame, packet) == wire::ParseError::none)
    on_lost(packet, kLostByFault, Cause::dropped, arrives);
}

void DeviceRecorder::on_placed(wire::Qpn qpn, wire::Psn psn) noexcept {
  if (next_ != nullptr) next_->on_placed(qpn, psn);
  const Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  if (Record* const record = begin(Kind::data_placed, qpn)) {
    record->psn = psn.value();
    if (const ArrivedPacket* const arrived = qp->arrived.find(psn)) {
      record->length_bytes = arrived->length_bytes;
      record->value = arrived->address;
      if (arrived->has_address) record->flags = flag::kHasReth;
    }
    end();
  }
}

// --- Requests ---

// One record for the post and the taking, where it has room for the time between.
template <typename Fill>
inline void DeviceRecorder::note_taken(wire::Qpn qpn, const Qp& qp, uint32_t post_stamp,
                                       const Fill& fill) {
  const TimeNs posted_ns = post_stamp == 0 ? now_ : transport::posted_ns(post_stamp, now_);
  const uint64_t ago_ns = now_ - posted_ns;
  const bool is_one = ago_ns <= UINT32_MAX;
  if (!is_one) {
    Record* const record = begin(Kind::posted, qpn);
    if (record == nullptr) return;
    fill(*record);
    record->program = qp.program;
    record->time_ns = posted_ns;
    end();
  }
  Record* const record = begin(Kind::taken, qpn);
  if (record == nullptr) return;
  fill(*record);
  record->program = qp.program;
  if (is_one) {
    record->flags |= flag::kPosted | (post_stamp == 0 ? flag::kTimeIsNics : 0);
    record->count = static_cast<uint32_t>(ago_ns);
  }
  end();
}

void DeviceRecorder::on_send_taken(wire::Qpn qpn, const transport::SendWork& work) noexcept {
  if (next_ != nullptr) next_->on_send_taken(qpn, work);
  Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  now_ = host_.now();
  const bool sends = !is_local(work.opcode) && work.fault == transport::WcStatus::success;
  const uint32_t request = qp->sends.on_taken(sends);
  note_taken(qpn, *qp, work.post_stamp, [&](Record& record) {
    record.wr_id = work.wr_id;
    record.request = request;
    record.opcode = wr_opcode_of(work.opcode);
    record.length_bytes = work.length_bytes;
    record.flags = flags_of(work);
    if (record.kind == Kind::posted) return;
    record.value = work.remote_address;
    record.detail = work.rkey.value;
    record.peer_qpn = work.remote_qpn.value;
    record.code = static_cast<uint8_t>(work.fault);
  });
}

void DeviceRecorder::on_receive_taken(wire::Qpn qpn, const transport::ReceiveWork& work) noexcept {
  if (next_ != nullptr) next_->on_receive_taken(qpn, work);
  Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  ++qp->receives_taken;
  note_taken(qpn, *qp, work.post_stamp, [&](Record& record) {
    record.wr_id = work.wr_id;
    record.request = qp->receives_taken;
    record.length_bytes = work.length_bytes;
    record.flags = flag::kReceiveQueue;
    if (qp->queues.srq != 0) record.flags |= flag::kShared;
    if (record.kind != Kind::posted) record.code = static_cast<uint8_t>(work.fault);
  });
}

// One answer tells of many requests: they are one record, of the last of them.
void DeviceRecorder::hold_acknowledged(const transport::Completion& completion) {
  if (acknowledged_.qpn != completion.qpn.value) flush();
  acknowledged_.kind = Kind::acknowledged;
  acknowledged_.time_ns = now_;
  acknowledged_.qpn = completion.qpn.value;
  acknowledged_.wr_id = completion.wr_id;
  acknowledged_.request = last_request_;
  acknowledged_.opcode = static_cast<uint8_t>(completion.opcode);
  acknowledged_.code = static_cast<uint8_t>(completion.status);
  acknowledged_.length_bytes = completion.byte_length;
}

void DeviceRecorder::flush() {
  if (acknowledged_.kind != Kind::none) record(std::exchange(acknowledged_, {}));
}

void DeviceRecorder::on_completion(const transport::Completion& completion,
                                   bool announced) noexcept {
  if (next_ != nullptr) next_->on_completion(completion, announced);
  Qp* const qp = find(completion.qpn);
  last_request_ = 0;
  if (qp == nullptr) return;
  const bool received = is_receive(completion.opcode);
  last_request_ = received ? ++qp->receives_over : qp->sends.on_over();
  if (!announced) return hold_acknowledged(completion);
  if (Record* const record = begin(Kind::completion_pushed, completion.qpn)) {
    record->wr_id = completion.wr_id;
    record->request = last_request_;
    record->opcode = static_cast<uint8_t>(completion.opcode);
    record->code = static_cast<uint8_t>(completion.status);
    record->length_bytes = completion.byte_length;
    record->program = qp->program;
    record->count = received ? qp->queues.receive_cq : qp->queues.send_cq;
    if (received) record->flags = flag::kReceiveQueue;
    end();
  }
}

void DeviceRecorder::on_polled(const transport::Completion& completion, uint32_t request,
                               TimeNs time_ns, bool is_exact) {
  const Qp* const qp = find(completion.qpn);
  if (qp == nullptr) return;
  if (Record* const record = begin(Kind::completion_polled, completion.qpn)) {
    record->time_ns = time_ns;
    record->wr_id = completion.wr_id;
    record->request = request;
    record->opcode = static_cast<uint8_t>(completion.opcode);
    record->code = static_cast<uint8_t>(completion.status);
    record->length_bytes = completion.byte_length;
    const bool received = is_receive(completion.opcode);
    record->program = qp->program;
    record->count = received ? qp->queues.receive_cq : qp->queues.send_cq;
    record->flags = static_cast<uint16_t>((received ? flag::kReceiveQueue : 0) |
                                          (is_exact ? 0 : flag::kTimeIsNics));
    end();
  }
}

// --- Events ---

void DeviceRecorder::on_refusal(wire::Qpn qpn, transport::Refusal refusal, uint32_t psn) noexcept {
  if (next_ != nullptr) next_->on_refusal(qpn, refusal, psn);
  const Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  if (Record* const record = begin(Kind::packet_refused, qpn)) {
    record->psn = psn & wire::Psn::kMask;
    record->program = static_cast<uint16_t>(refusal);
    if (answers(qp->type)) record->code = transport::rule_of(refusal).syndrome;
    if (refusal == transport::Refusal::bad_rkey) {
      record->detail = qp->asked.key;
      record->cause =
          host_.explain_key(device_, qpn, qp->asked.key, qp->asked.address, qp->asked.length_bytes);
    }
    end();
  }
}

void DeviceRecorder::on_event(wire::Qpn qpn, TraceEvent event, uint32_t value) noexcept {
  if (next_ != nullptr) next_->on_event(qpn, event, value);
  switch (event) {
    case TraceEvent::delivered:  // what these tell is told by other calls
    case TraceEvent::sent:
    case TraceEvent::payload_received:
    case TraceEvent::payload_sent:
    case TraceEvent::received:
    case TraceEvent::state_changed:
      return;
    case TraceEvent::malformed:
    case TraceEvent::icrc_error:
      return on_port_event(event);
    case TraceEvent::no_qp:
      // Where there is a QP of that number, it refuses the packet.
      if (filter_.everything() && !qps_.contains(qpn.value)) {
        now_ = host_.now();
        simple(Kind::packet_dropped, qpn, value, Cause::no_qp);
      }
      return;
    default:
      if (Qp* const qp = find(qpn)) on_qp_event(qpn, *qp, event, value);
  }
}

// Whether it waits as it did before is not told again, unless it has sent something since.
void DeviceRecorder::on_turn_over(wire::Qpn qpn, transport::WaitReason reason) noexcept {
  if (next_ != nullptr && next_->wants_waits()) next_->on_turn_over(qpn, reason);
  Qp* const qp = find(qpn);
  if (qp == nullptr) return;
  const Cause waits = cause_of(reason);
  const bool goes_on = waits == qp->waits && !qp->sent_since;
  const bool has_gone_on = waits == Cause::none && qp->sent_since;
  qp->waits = waits;
  qp->sent_since = false;
  if (goes_on || has_gone_on) return;
  now_ = host_.now();
  simple(Kind::waits, qpn, 0, waits);
}

void DeviceRecorder::on_port_event(TraceEvent event) {
  if (!filter_.everything()) return;
  now_ = host_.now();
  simple(Kind::packet_dropped, {}, 0,
         event == TraceEvent::malformed ? Cause::malformed : Cause::bad_icrc);
}

void DeviceRecorder::go_back(wire::Qpn qpn, Qp& qp, uint32_t psn, Cause cause) {
  qp.resends.go_back(cause);
  simple(Kind::retransmission, qpn, psn, cause);
}

void DeviceRecorder::on_timeout(wire::Qpn qpn, Qp& qp, uint32_t psn) {
  now_ = host_.now();
  ++qp.timeouts;
  if (Record* const record = begin(Kind::ack_timeout, qpn)) {
    record->psn = psn;
    record->count = qp.timeouts;
    record->detail = qp.peer.timers.retry_count;
    record->request = qp.sends.find(wire::Psn{psn});
    end();
  }
  qp.resends.go_back(Cause::ack_timeout);
}

void DeviceRecorder::on_cnp(wire::Qpn qpn, uint32_t rate_kbps) {
  if (Record* const record = begin(Kind::congestion, qpn)) {
    record->cause = Cause::cnp_handled;
    record->value = uint64_t{rate_kbps} * 1000;
    end();
  }
}

void DeviceRecorder::on_qp_event(wire::Qpn qpn, Qp& qp, TraceEvent event, uint32_t value) {
  using enum TraceEvent;
  switch (event) {
    case retransmitted:
      return qp.resends.on_built(wire::Psn{value});
    case duplicate_request:
      return simple(Kind::duplicate, qpn, value);
    case out_of_sequence:
      return simple(Kind::out_of_sequence, qpn, value);
    case placed_ahead:
      return simple(Kind::placed_ahead, qpn, value);
    case sequence_nak_sent:
      return simple(Kind::nak_sent, qpn, value, Cause::none, wire::syndrome::kNakSequence);
    case rnr_nak_sent:
      return simple(Kind::rnr_sent, qpn, value, Cause::none,
                    static_cast<uint8_t>(wire::syndrome::kRnr | (qp.peer.rnr_timer & 0x1f)));
    case sequence_nak_received:
      simple(Kind::nak_received, qpn, value, Cause::none, qp.last_syndrome);
      return go_back(qpn, qp, value, Cause::sequence_nak);
    case rnr_nak_received:
      simple(Kind::rnr_received, qpn, value, Cause::none, qp.last_syndrome);
      return go_back(qpn, qp, value, Cause::rnr_nak);
    case implied_nak:
      simple(Kind::implied_nak, qpn, value);
      return go_back(qpn, qp, value, Cause::implied_nak);
    case early_retransmission:
      now_ = host_.now();
      return go_back(qpn, qp, value, Cause::early_probe);
    case ack_timeout:
      return on_timeout(qpn, qp, value);
    case stale_ack:
      return simple(Kind::stale_ack, qpn, value);
    case ecn_marked:
      return simple(Kind::congestion, qpn, value, Cause::ecn_marked);
    case cnp_sent:
      return simple(Kind::congestion, qpn, 0, Cause::cnp_sent);
    case cnp_handled:
      return on_cnp(qpn, value);
    case cnp_ignored:
      return simple(Kind::congestion, qpn, 0, Cause::cnp_ignored);
    case responder_error:
      return host_.on_failure(device_, qpn);
    case completion_with_error:
      if (value != static_cast<uint32_t>(transport::WcStatus::flush_error))
        host_.on_failure(device_, qpn);
      return;
    default:
      return;
  }
}

}  // namespace rocemu::trace
