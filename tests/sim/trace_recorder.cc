#include "tests/sim/trace_recorder.h"

#include <algorithm>
#include <bit>

#include "base/verbs/numbers.h"
#include "emulator/trace/format/writer.h"
#include "emulator/transport/responder/refusals.h"
#include "emulator/wire/packet.h"

namespace rocemu::sim_scenarios {

using trace::Cause;
using trace::Kind;
using trace::Record;
using trace::Table;
using transport::TraceEvent;

namespace {

constexpr const char* kLosses[] = {"", "loss", "queue", "outage", "corruption"};
constexpr uint16_t kCorruption = 4;

Cause cause_of(impairment::Loss loss) {
  switch (loss) {
    case impairment::Loss::queue_full:
      return Cause::queue_full;
    case impairment::Loss::outage:
      return Cause::link_down;
    default:
      return Cause::dropped;
  }
}

// What a frame's headers say. `qpn` is the destination's.
Record header_of(const wire::Packet& packet) {
  Record record;
  record.qpn = packet.bth.destination_qp.value;
  record.psn = packet.bth.psn.value();
  record.opcode = packet.bth.opcode;
  record.length_bytes = static_cast<uint32_t>(packet.payload.size());
  const wire::OpcodeTraits& traits = packet.traits();
  if (packet.bth.ack_request) record.flags |= trace::flag::kAckRequest;
  if (packet.bth.solicited) record.flags |= trace::flag::kSolicited;
  if (traits.kind == wire::MessageKind::response) record.flags |= trace::flag::kResponse;
  if (traits.aeth) {
    record.flags |= trace::flag::kHasAeth;
    record.code = packet.ext.aeth.syndrome;
    record.count = packet.ext.aeth.msn;
  } else if (traits.reth) {
    record.flags |= trace::flag::kHasReth;
    record.value = packet.ext.reth.virtual_address;
    record.detail = packet.ext.reth.rkey.value;
    if (traits.kind == wire::MessageKind::read) record.count = packet.ext.reth.length_bytes;
  }
  return record;
}

// Events that are records of their own; `none`: those that are not, or come of others.
Kind kind_of(TraceEvent event) {
  switch (event) {
    case TraceEvent::duplicate_request:
      return Kind::duplicate;
    case TraceEvent::out_of_sequence:
      return Kind::out_of_sequence;
    case TraceEvent::placed_ahead:
      return Kind::placed_ahead;
    case TraceEvent::sequence_nak_sent:
      return Kind::nak_sent;
    case TraceEvent::sequence_nak_received:
      return Kind::nak_received;
    case TraceEvent::rnr_nak_sent:
      return Kind::rnr_sent;
    case TraceEvent::rnr_nak_received:
      return Kind::rnr_received;
    case TraceEvent::implied_nak:
      return Kind::implied_nak;
    case TraceEvent::ack_timeout:
      return Kind::ack_timeout;
    case TraceEvent::stale_ack:
      return Kind::stale_ack;
    case TraceEvent::state_changed:
      return Kind::qp_state;
    default:
      return Kind::none;
  }
}

// Why packets are sent again after such an event.
Cause cause_of(TraceEvent event) {
  switch (event) {
    case TraceEvent::ack_timeout:
      return Cause::ack_timeout;
    case TraceEvent::early_retransmission:
      return Cause::early_probe;
    case TraceEvent::sequence_nak_received:
      return Cause::sequence_nak;
    case TraceEvent::rnr_nak_received:
      return Cause::rnr_nak;
    case TraceEvent::implied_nak:
      return Cause::implied_nak;
    default:
      return Cause::none;
  }
}

}  // namespace

class TraceRecorder::NodeObserver final : public transport::Observer {
 public:
  NodeObserver(TraceRecorder& recorder, uint32_t node) : recorder_(recorder), node_(node) {}

  void on_event(wire::Qpn qpn, TraceEvent event, uint32_t value) noexcept override {
    recorder_.on_event(node_, qpn.value, event, value);
  }
  void on_refusal(wire::Qpn qpn, transport::Refusal refusal, uint32_t psn) noexcept override {
    recorder_.on_refusal(node_, qpn.value, refusal, psn);
  }

 private:
  TraceRecorder& recorder_;
  const uint32_t node_;
};

TraceRecorder::TraceRecorder(const sim::Fabric& fabric, const std::string& what) : fabric_(fabric) {
  trace_.header = trace::make_header(trace::Clock::virtual_time, 0, 0, what);
  for (uint16_t i = 1; i <= kCorruption; ++i) name(Table::impairment, i, kLosses[i]);
  for (const transport::RefusalRule& rule : transport::kRefusalRules)
    name(Table::rule, static_cast<uint16_t>(rule.refusal), std::string(rule.name));
}

TraceRecorder::~TraceRecorder() = default;

void TraceRecorder::name(Table table, uint16_t number, const std::string& text) {
  for (const Record& record : trace::name_records(table, number, text))
    trace_.names.add(std::bit_cast<trace::NameRecord>(record));
}

Record& TraceRecorder::add(Kind kind, uint32_t node, uint32_t qpn) {
  Record& record = trace_.records.emplace_back();
  record.time_ns = fabric_.now_ns();
  record.kind = kind;
  record.device = static_cast<uint16_t>(node);
  record.qpn = qpn;
  return record;
}

void TraceRecorder::add_node(sim::EndpointNode& node) {
  name(Table::device, static_cast<uint16_t>(node.index()), "node" + std::to_string(node.index()));
  observers_.push_back(std::make_unique<NodeObserver>(*this, node.index()));
  node.endpoint().set_observer(observers_.back().get());
}

void TraceRecorder::add_qp(uint32_t node, wire::Qpn qpn, uint32_t peer_node, wire::Qpn peer_qpn,
                           const transport::QpAttributes& attributes) {
  Qp& qp = qps_[{node, qpn.value}];
  qp.peer = {peer_node, peer_qpn.value};
  qp.retry_count = attributes.retry_count;
  qp.min_rnr_timer = attributes.min_rnr_timer;
  sources_[{peer_node, peer_qpn.value}] = {node, qpn.value};
  add(Kind::qp_created, node, qpn.value).code = verbs::qp_type::kRc;
  Record& state = add(Kind::qp_state, node, qpn.value);
  state.code = static_cast<uint8_t>(transport::QpState::ready_to_send);
  state.peer_qpn = peer_qpn.value;
  state.peer_device = static_cast<uint16_t>(peer_node);
  state.psn = attributes.send_psn.value();
  state.length_bytes = attributes.path_mtu_bytes;
  state.count =
      trace::QpTimers{attributes.retry_count, attributes.rnr_retry, attributes.timeout}.packed();
  state.cause = Cause::by_program;
}

void TraceRecorder::on_sent(const sim::FrameRecord& frame, Record header) {
  const End to{frame.to, header.qpn};
  const auto source = sources_.find(to);
  header.peer_qpn = header.qpn;
  header.peer_device = static_cast<uint16_t>(frame.to);
  header.device = static_cast<uint16_t>(frame.from);
  header.qpn = source == sources_.end() ? 0 : source->second.second;
  header.time_ns = fabric_.now_ns();
  header.kind = Kind::packet_sent;
  if (source != sources_.end() && (header.flags & trace::flag::kResponse) == 0) {
    Qp& qp = qps_[source->second];
    if (const auto again = qp.again.find(header.psn); again != qp.again.end()) {
      header.flags |= trace::flag::kRetransmission;
      header.cause = qp.cause;
      if (--again->second == 0) qp.again.erase(again);
    }
  }
  trace_.records.push_back(header);
  if (frame.fate == nullptr || frame.fate->loss == impairment::Loss::none) return;
  header.kind = Kind::packet_lost;
  header.program = static_cast<uint16_t>(frame.fate->loss);
  header.cause = cause_of(frame.fate->loss);
  trace_.records.push_back(header);
}

void TraceRecorder::on_frame(const sim::FrameRecord& frame) {
  wire::Packet packet;
  if (wire::parse_frame(frame.frame, packet) != wire::ParseError::none) return;
  Record header = header_of(packet);
  if (frame.kind == sim::FrameRecord::Kind::sent) return on_sent(frame, header);
  header.device = static_cast<uint16_t>(frame.to);
  header.peer_device = static_cast<uint16_t>(frame.from);
  if (frame.corrupted) {
    header.kind = Kind::packet_dropped;
    header.cause = Cause::bad_icrc;
    header.time_ns = fabric_.now_ns();
    trace_.records.push_back(header);
    return;
  }
  const auto qp = qps_.find({frame.to, header.qpn});
  if (qp == qps_.end()) return;
  header.kind = Kind::packet_received;
  header.peer_qpn = qp->second.peer.second;
  qp->second.arrived.push_back(header);
}

void TraceRecorder::on_delivered(Qp& qp, uint32_t psn) {
  const auto found = std::ranges::find(qp.arrived, psn, &Record::psn);
  if (found == qp.arrived.end()) return;
  Record record = *found;
  qp.arrived.erase(found);
  record.time_ns = fabric_.now_ns();
  if ((record.flags & trace::flag::kHasAeth) != 0) qp.syndrome = record.code;
  trace_.records.push_back(record);
}

void TraceRecorder::on_event(uint32_t node, uint32_t qpn, TraceEvent event, uint32_t value) {
  const auto found = qps_.find({node, qpn});
  if (found == qps_.end()) return;
  Qp& qp = found->second;
  if (event == TraceEvent::delivered) return on_delivered(qp, value);
  if (event == TraceEvent::retransmitted) {
    ++qp.again[value];
    return;
  }
  if (const Cause cause = cause_of(event); cause != Cause::none) qp.cause = cause;
  const Kind kind = kind_of(event);
  if (kind == Kind::none) return;
  Record& record = add(kind, node, qpn);
  if (kind == Kind::qp_state) {
    record.code = static_cast<uint8_t>(value);
    return;
  }
  record.psn = value;
  if (kind == Kind::nak_sent || kind == Kind::nak_received)
    record.code = wire::syndrome::kNakSequence;
  if (kind == Kind::rnr_sent) record.code = wire::syndrome::kRnr | qp.min_rnr_timer;
  if (kind == Kind::rnr_received) record.code = qp.syndrome;
  if (kind == Kind::ack_timeout) {
    record.count = ++qp.timeouts;
    record.detail = qp.retry_count;
  }
}

void TraceRecorder::on_refusal(uint32_t node, uint32_t qpn, transport::Refusal refusal,
                               uint32_t psn) {
  Record& record = add(Kind::packet_refused, node, qpn);
  record.psn = psn;
  record.program = static_cast<uint16_t>(refusal);
}

void TraceRecorder::on_post(uint32_t node, wire::Qpn qpn, const sim::SendRequest& request) {
  Record& record = add(Kind::posted, node, qpn.value);
  record.wr_id = request.wr_id;
  record.request = static_cast<uint32_t>(request.wr_id) + 1;
  record.opcode = wr_opcode_of(request.opcode);
  record.length_bytes = request.inline_payload
                            ? static_cast<uint32_t>(request.inline_payload->size())
                            : sim::total_bytes(request.sges);
  if (request.signaled) record.flags |= trace::flag::kSignaled;
  if (request.fence) record.flags |= trace::flag::kFence;
  if (request.solicited) record.flags |= trace::flag::kSolicited;
}

void TraceRecorder::on_post(uint32_t node, wire::Qpn qpn, const sim::ReceiveRequest& request) {
  Record& record = add(Kind::posted, node, qpn.value);
  record.wr_id = request.wr_id;
  record.request = static_cast<uint32_t>(request.wr_id) + 1;
  record.length_bytes = sim::total_bytes(request.sges);
  record.flags = trace::flag::kReceiveQueue;
}

void TraceRecorder::on_completion(uint32_t node, bool is_receive,
                                  const transport::Completion& completion) {
  // A program of a scenario sees a completion in the moment in which it is pushed.
  for (const Kind kind : {Kind::completion_pushed, Kind::completion_polled}) {
    Record& record = add(kind, node, completion.qpn.value);
    record.wr_id = completion.wr_id;
    record.request = static_cast<uint32_t>(completion.wr_id) + 1;
    record.opcode = static_cast<uint8_t>(completion.opcode);
    record.code = static_cast<uint8_t>(completion.status);
    record.length_bytes = completion.byte_length;
    if (is_receive) record.flags = trace::flag::kReceiveQueue;
  }
}

trace::Trace TraceRecorder::take() { return std::move(trace_); }

}  // namespace rocemu::sim_scenarios
