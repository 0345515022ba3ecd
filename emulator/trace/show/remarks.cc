#include "emulator/trace/show/remarks.h"

#include <string_view>

#include "emulator/trace/show/vocabulary.h"
#include "emulator/wire/headers.h"

namespace rocemu::trace {

namespace {

bool is_packet(Kind kind) { return kind >= Kind::packet_sent && kind <= Kind::packet_dropped; }

bool is_completion(Kind kind) {
  return kind == Kind::completion_pushed || kind == Kind::completion_polled ||
         kind == Kind::completion_lost;
}

// Adds what a packet's header says beyond its opcode.
void add_header(std::string& text, const Record& record) {
  text += ", PSN " + std::to_string(record.psn);
  if (record.length_bytes != 0) text += ", " + std::to_string(record.length_bytes) + " B";
  if ((record.flags & flag::kHasAeth) != 0)
    text += ", " + syndrome_text(record.code) + ", MSN " + std::to_string(record.count);
  if ((record.flags & flag::kHasReth) != 0)
    text += ", address " + hexadecimal(record.value) + ", rkey " + hexadecimal(record.detail);
  if ((record.flags & flag::kAckRequest) != 0) text += ", wants an ACK";
  if ((record.flags & flag::kSolicited) != 0) text += ", solicited";
  if ((record.flags & flag::kCongestion) != 0) text += ", CE";
}

std::string packet_record_text(const Names& names, const Record& record) {
  // Of what is refused the record has the PSN alone: its packet has been recorded before it.
  if (record.kind == Kind::packet_refused)
    return "PSN " + std::to_string(record.psn) + ": rule " +
           names.text(Table::rule, record.program) +
           (record.detail == 0 ? "" : ", rkey " + hexadecimal(record.detail));
  std::string text = packet_opcode_text(record.opcode);
  add_header(text, record);
  const bool is_sent = record.kind == Kind::packet_sent ||
                       (record.kind == Kind::packet_lost && (record.flags & flag::kArriving) == 0);
  if (record.peer_qpn != 0)
    text += (is_sent ? ", to QP " : ", from QP ") + hexadecimal(record.peer_qpn);
  if (record.peer_device != kNoDevice)
    text += " of " + names.text(Table::device, record.peer_device);
  if (record.kind == Kind::packet_lost)
    text += ": " + names.text(Table::impairment, record.program);
  if ((record.flags & flag::kRetransmission) != 0) text += ", sent again";
  return text;
}

std::string request_record_text(const Record& record) {
  const bool is_receive = (record.flags & flag::kReceiveQueue) != 0;
  std::string text;
  if (is_completion(record.kind)) {
    text = completion_opcode_text(record.opcode) + ", " + status_text(record.code);
  } else {
    text = is_receive ? "receive" : request_opcode_text(record.opcode);
  }
  text += ", wr_id " + hexadecimal(record.wr_id);
  if (record.request != 0) text += ", request " + std::to_string(record.request);
  text += ", " + std::to_string(record.length_bytes) + " B";
  if (is_completion(record.kind) && record.count != 0)
    text += ", CQ " + std::to_string(record.count);
  if ((record.flags & flag::kFence) != 0) text += ", fence";
  if ((record.flags & flag::kSignaled) != 0) text += ", signaled";
  if (record.kind == Kind::taken && record.code != 0)
    text += ", doomed to " + status_text(record.code);
  return text;
}

std::string state_record_text(const Names& names, const Record& record) {
  std::string text = state_text(record.code);
  if (record.peer_qpn == 0) return text;
  text += ", with QP " + hexadecimal(record.peer_qpn);
  if (record.peer_device != kNoDevice)
    text += " of " + names.text(Table::device, record.peer_device);
  const QpTimers timers = QpTimers::unpacked(record.count);
  return text + ", PSN " + std::to_string(record.psn) + ", MTU " +
         std::to_string(record.length_bytes) + ", retry_cnt " + std::to_string(timers.retry_count) +
         ", rnr_retry " + std::to_string(timers.rnr_retry) + ", timeout " +
         std::to_string(timers.timeout);
}

std::string cm_record_text(const Names& names, const Record& record) {
  constexpr uint8_t kRej = 0x12;
  const bool is_sent = record.kind == Kind::cm_sent;
  std::string text = cm_message_text(record.opcode);
  if (record.code != 0)
    text += (record.opcode == kRej ? ", reason " : ", status ") + std::to_string(record.code);
  text +=
      ", ids " + hexadecimal(record.value >> 32) + " and " + hexadecimal(record.value & 0xffffffff);
  if (record.psn != 0) text += ", PSN " + std::to_string(record.psn);
  if (record.peer_qpn != 0) text += ", peer's QP " + hexadecimal(record.peer_qpn);
  if (record.peer_device != kNoDevice)
    text += (is_sent ? ", to " : ", from ") + names.text(Table::device, record.peer_device);
  return text;
}

std::string creation_text(const Record& created) {
  const uint32_t sends = created.count, receives = created.length_bytes;
  std::string text = qp_type_text(created.code);
  if (sends != 0 && sends == receives) {
    text += ", CQ " + std::to_string(sends);
  } else {
    if (sends != 0) text += ", CQ " + std::to_string(sends) + " for sends";
    if (receives != 0) text += ", CQ " + std::to_string(receives) + " for receives";
  }
  if ((created.flags & flag::kShared) != 0) text += ", SRQ " + std::to_string(created.detail);
  return text;
}

// The kinds whose fields are a few.
std::string other_record_text(const Names& names, const Record& record) {
  const std::string psn = "PSN " + std::to_string(record.psn);
  switch (record.kind) {
    case Kind::lost:
      return std::to_string(record.value) + " records found no room";
    case Kind::qp_created:
      return creation_text(record);
    case Kind::nak_sent:
    case Kind::nak_received:
    case Kind::rnr_sent:
      return psn + ", " + syndrome_text(record.code);
    case Kind::rnr_received:
      return psn + ", " + syndrome_text(record.code) +
             (record.value == 0 ? "" : ", waits " + duration_text(record.value));
    case Kind::ack_timeout:
      return psn + ", " + std::to_string(record.count) + " of " + std::to_string(record.detail);
    case Kind::retransmission:
    case Kind::implied_nak:
    case Kind::duplicate:
    case Kind::out_of_sequence:
    case Kind::placed_ahead:
    case Kind::stale_ack:
      return psn;
    case Kind::data_placed:
      return psn + ", " + std::to_string(record.length_bytes) + " B" +
             ((record.flags & flag::kHasReth) == 0 && record.value == 0
                  ? ""
                  : " at " + hexadecimal(record.value));
    case Kind::stopped:
      return record.value == 0 ? "" : std::to_string(record.value) + " records left out";
    case Kind::acknowledged:
      return "up to request " + std::to_string(record.request);
    case Kind::waits:
      return record.cause == Cause::none ? "no more" : "";
    case Kind::congestion:
      return record.value == 0 ? "" : std::to_string(record.value) + " bit/s";
    case Kind::counter:
      return names.text(Table::counter, record.program) + " " + std::to_string(record.value);
    default:
      return "";
  }
}

}  // namespace

std::string record_text(const Names& names, const Record& record) {
  std::string detail;
  if (is_packet(record.kind)) {
    detail = packet_record_text(names, record);
  } else if (record.kind == Kind::posted || record.kind == Kind::taken ||
             is_completion(record.kind)) {
    detail = request_record_text(record);
  } else if (record.kind == Kind::cm_sent || record.kind == Kind::cm_received) {
    detail = cm_record_text(names, record);
  } else if (record.kind == Kind::qp_state) {
    detail = state_record_text(names, record);
  } else {
    detail = other_record_text(names, record);
  }
  std::string text(to_text(record.kind));
  if (!detail.empty()) text += ": " + detail;
  if (record.cause != Cause::none) {
    const std::string_view cause = to_text(record.cause);
    text += ", " + (cause.empty() ? "cause " + std::to_string(static_cast<int>(record.cause))
                                  : std::string(cause));
  }
  if ((record.flags & flag::kExisted) != 0) text += ", older than the trace";
  return text;
}

namespace {

std::string key_text(const Record& refused) {
  const std::string key = "rkey " + hexadecimal(refused.detail);
  switch (refused.cause) {
    case Cause::key_never_given:
      return key + ", which was never given";
    case Cause::key_gone:
      return key + " of a deregistered region";
    case Cause::key_other_domain:
      return key + " of another protection domain";
    case Cause::key_out_of_range:
      return key + ", whose region does not have all of it";
    case Cause::key_not_granted:
      return key + ", which does not grant that";
    default:
      return {};
  }
}

// Says why a packet was refused, as it stands behind what became of it.
std::string reason_text(const Names& names, const Record& refused) {
  if (const std::string key = key_text(refused); !key.empty()) return ": " + key;
  const std::string rule = names.text(Table::rule, refused.program);
  return rule == "receiver_not_ready" ? ": no receive posted" : ", by rule " + rule;
}

// A rule by which the QP says something each time, and not only now and then.
bool always_answers(const Record& refused) {
  return refused.code != 0 && !wire::syndrome::is_rnr(refused.code) &&
         refused.code != wire::syndrome::kNakSequence;
}

}  // namespace

std::string refusal_text(const Names& names, const Record& refused, const Record* drew) {
  const std::string reason = reason_text(names, refused);
  if (drew != nullptr) return "draws " + syndrome_text(drew->code) + reason;
  if (always_answers(refused)) return "draws " + syndrome_text(refused.code) + reason;
  const std::string what = refused.code == 0 ? "dropped" : "refused";
  return what + (reason.starts_with(", ") ? reason.substr(1) : reason);
}

std::string event_text(const Names& names, const Record& why) {
  switch (why.kind) {
    case Kind::ack_timeout:
      return "timeout " + std::to_string(why.count) + " of " + std::to_string(why.detail);
    case Kind::rnr_received:
      return "the receiver was not ready" +
             (why.value == 0 ? "" : ", after " + duration_text(why.value));
    case Kind::nak_received:
      return syndrome_text(why.code);
    case Kind::implied_nak:
      return "a later answer came first";
    case Kind::packet_refused: {
      const std::string key = key_text(why);
      return key.empty() ? "rule " + names.text(Table::rule, why.program) : key;
    }
    case Kind::nak_sent:
      return syndrome_text(why.code);
    case Kind::rnr_sent:
      return "no receive";
    default:
      return std::string(to_text(why.cause));
  }
}

std::string because_text(const Story& story, const Packet& packet) {
  if (packet.because == kNowhere) return {};
  return event_text(story.trace->names, story.record(packet.because));
}

namespace {

void remark_on_arrival(const Story& story, const Packet& packet, std::vector<std::string>& texts) {
  const Names& names = story.trace->names;
  if (packet.refused != kNowhere) {
    const Record* const drew = packet.drew == kNowhere ? nullptr : &story.record(packet.drew);
    texts.push_back(refusal_text(names, story.record(packet.refused), drew));
  } else if (packet.drew != kNowhere) {
    texts.push_back("draws " + syndrome_text(story.record(packet.drew).code));
  }
  for (const At at : packet.remarks) switch (story.record(at).kind) {
      case Kind::duplicate:
        texts.emplace_back("a duplicate, executed before");
        break;
      case Kind::out_of_sequence:
        if (packet.refused == kNowhere) texts.emplace_back("ahead of the expected PSN");
        break;
      case Kind::placed_ahead:
        texts.emplace_back("taken out of order");
        break;
      case Kind::stale_ack:
        texts.emplace_back("tells nothing new");
        break;
      case Kind::implied_nak:
        texts.emplace_back("tells that PSN " + std::to_string(story.record(at).psn) + " was lost");
        break;
      default:
        break;
    }
}

}  // namespace

std::vector<std::string> remarks_on(const Story& story, const Packet& packet) {
  const Names& names = story.trace->names;
  std::vector<std::string> texts;
  if (packet.lost != kNowhere) {
    const Record& lost = story.record(packet.lost);
    const std::string_view how = to_text(lost.cause);
    texts.push_back(
        (lost.cause == Cause::corrupted ? "corrupted: " : "lost: ") +
        names.text(Table::impairment, lost.program) +
        (how.empty() || lost.cause == Cause::corrupted ? "" : " (" + std::string(how) + ")"));
  }
  if (packet.arrived != kNowhere && story.record(packet.arrived).kind == Kind::packet_dropped)
    texts.push_back("dropped: " + std::string(to_text(story.record(packet.arrived).cause)));
  if (packet.is_copy) texts.emplace_back("a copy that the network made");
  const Record& header = story.record(packet.header());
  if (packet.sent != kNowhere && !packet.is_copy) {
    const Record& sent = story.record(packet.sent);
    std::string because = because_text(story, packet);
    if ((sent.flags & flag::kRetransmission) != 0) {
      if (because.empty()) because = to_text(sent.cause);
      if (sent.cause == Cause::early_probe) because = "an answer is overdue";
      texts.push_back("sent again" + (because.empty() ? "" : ": " + because));
    } else if (!because.empty()) {
      texts.push_back("because of " + because);
    }
  }
  remark_on_arrival(story, packet, texts);
  if ((header.flags & flag::kCongestion) != 0) texts.emplace_back("marked: congestion met");
  return texts;
}

}  // namespace rocemu::trace
