#include "emulator/trace/show/remarks.h"

#include <string_view>

#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

bool is_packet(Kind kind) { return kind >= Kind::packet_sent && kind <= Kind::packet_dropped; }

bool is_completion(Kind kind) {
  return kind == Kind::completion_pushed || kind == Kind::completion_polled ||
         kind == Kind::completion_lost;
}

// What a packet's header says beyond its opcode.
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
           names.text(Table::rule, record.program);
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
  if (is_completion(record.kind)) text += ", CQ " + std::to_string(record.count);
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

// The kinds whose fields are a few.
std::string other_record_text(const Names& names, const Record& record) {
  const std::string psn = "PSN " + std::to_string(record.psn);
  switch (record.kind) {
    case Kind::lost:
      return std::to_string(record.value) + " records found no room";
    case Kind::qp_created:
      return qp_type_text(record.code);
    case Kind::nak_sent:
    case Kind::nak_received:
      return psn + ", " + syndrome_text(record.code);
    case Kind::rnr_sent:
      return psn;  // the packet has the timer
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
      return psn + ", " + std::to_string(record.length_bytes) + " B at " +
             hexadecimal(record.value);
    case Kind::acknowledged:
      return "up to request " + std::to_string(record.request);
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

std::string because_text(const Story& story, const Packet& packet) {
  if (packet.because == kNowhere) return {};
  const Record& why = story.record(packet.because);
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
    case Kind::packet_refused:
      return "rule " + story.trace->names.text(Table::rule, why.program);
    case Kind::nak_sent:
      return syndrome_text(why.code);
    case Kind::rnr_sent:
      return "no receive";
    default:
      return std::string(to_text(why.cause));
  }
}

namespace {

// What a packet has drawn, of which the record of a decision does not know the timer.
std::string drawn_text(const Record& drew) {
  return drew.kind == Kind::rnr_sent ? "RNR NAK" : syndrome_text(drew.code);
}

void remark_on_arrival(const Story& story, const Packet& packet, std::vector<std::string>& texts) {
  const Names& names = story.trace->names;
  if (packet.refused != kNowhere) {
    const std::string rule =
        "rule " + names.text(Table::rule, story.record(packet.refused).program);
    texts.push_back(packet.drew == kNowhere
                        ? "refused by " + rule
                        : "draws " + drawn_text(story.record(packet.drew)) + ", by " + rule);
  } else if (packet.drew != kNowhere) {
    texts.push_back("draws " + drawn_text(story.record(packet.drew)));
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
