#include "emulator/trace/show/commented_frames.h"

#include <bit>

#include "emulator/trace/show/pcapng_blocks.h"
#include "emulator/trace/show/remarks.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

CommentedFrames::CommentedFrames(std::string_view creator, DeviceOf device_of, Write write)
    : device_of_(std::move(device_of)), write_(std::move(write)) {
  write_(pcapng::section("The comments of packets are what the NIC knows of them", creator));
}

// --- What is known ---

CommentedFrames::Held* CommentedFrames::at(uint64_t number) {
  return number == kNone || number < first_ ? nullptr : &held_[number - first_];
}

// The frame that a record speaks of: the oldest one that has not come yet, or else the last one.
// kNoDevice, and no opcode, fit all.
uint64_t CommentedFrames::find(uint32_t qpn, const Record& record, uint16_t from, uint16_t to) {
  const auto last = last_of_key_.find(key_of(qpn, record.psn));
  uint64_t oldest = kNone, newest = kNone;
  for (uint64_t number = last == last_of_key_.end() ? kNone : last->second;
       const Held* held = at(number); number = held->before) {
    if (record.kind != Kind::packet_dropped && held->opcode != record.opcode) continue;
    if (from != kNoDevice && held->from != from) continue;
    if (to != kNoDevice && held->to != to) continue;
    if (newest == kNone) newest = number;
    if (!held->has_come) oldest = number;
  }
  return oldest != kNone ? oldest : newest;
}

void CommentedFrames::say(uint64_t number, const std::string& text) {
  Held* const held = at(number);
  if (held == nullptr || text.empty()) return;
  if (!held->comment.empty()) held->comment += "; ";
  held->comment += text;
}

std::string CommentedFrames::introduction(const Record& record) {
  Qp& qp = qp_of(record);
  if (qp.introduced || qp.program == kNoProgram) return {};
  qp.introduced = true;
  return "QP " + hexadecimal(record.qpn) + " is of " + program_text(names_, qp.program);
}

// Says why a packet leaves that is not simply the next one.
std::string CommentedFrames::sent_text(const Record& record) {
  const Qp& qp = qp_of(record);
  const auto text_of = [&](Kind kind) -> std::string {
    const auto last = qp.last.find(kind);
    return last == qp.last.end() ? "" : event_text(names_, last->second);
  };
  if ((record.flags & flag::kHasAeth) != 0 && refuses(record.code)) {
    const std::string because = text_of(Kind::packet_refused);
    return because.empty() ? "" : "because of " + because;
  }
  if ((record.flags & flag::kRetransmission) == 0) return {};
  std::string because = record.cause == Cause::ack_timeout    ? text_of(Kind::ack_timeout)
                        : record.cause == Cause::rnr_nak      ? text_of(Kind::rnr_received)
                        : record.cause == Cause::sequence_nak ? text_of(Kind::nak_received)
                        : record.cause == Cause::implied_nak  ? text_of(Kind::implied_nak)
                                                              : "";
  if (because.empty()) because = to_text(record.cause);
  return "sent again" + (because.empty() ? "" : ": " + because);
}

void CommentedFrames::on_sent(const Record& record) {
  std::string note = sent_text(record);
  const std::string who = introduction(record);
  if (!who.empty()) note += (note.empty() ? "" : "; ") + who;
  if (note.empty()) return;
  if (notes_.size() >= kMaxNotes) notes_.clear();
  notes_[note_key(record.peer_qpn, record)] = note;
}

// A frame that is lost on its way out has not passed here: then its note still waits.
void CommentedFrames::on_lost(const Record& record) {
  const bool arrives = (record.flags & flag::kArriving) != 0;
  const uint32_t qpn = arrives ? record.qpn : record.peer_qpn;
  if (notes_.erase(note_key(qpn, record)) != 0) return;
  const uint64_t number = find(qpn, record, arrives ? record.peer_device : record.device,
                               arrives ? record.device : record.peer_device);
  const std::string_view how = to_text(record.cause);
  say(number, "lost: " + names_.text(Table::impairment, record.program) +
                  (how.empty() ? "" : " (" + std::string(how) + ")"));
  if (Held* const held = at(number)) held->has_come = true;
}

void CommentedFrames::on_received(const Record& record) {
  Qp& qp = qp_of(record);
  qp.current = find(record.qpn, record, record.peer_device, record.device);
  Held* const held = at(qp.current);
  if (held == nullptr) return;
  if (held->has_come) say(qp.current, "comes more than once");
  held->has_come = true;
  say(qp.current, introduction(record));
  if ((record.flags & flag::kCongestion) != 0) say(qp.current, "marked: congestion met");
}

void CommentedFrames::on_refused(const Record& record) {
  Qp& qp = qp_of(record);
  // What is dropped in silence draws no NAK.
  if (record.code != 0) qp.last[Kind::packet_refused] = record;
  Held* const held = at(qp.current);
  if (held == nullptr) return;
  qp.refusal_at = held->comment.size();
  say(qp.current, refusal_text(names_, record, nullptr));
}

// The receiver says something to the packet that it has refused.
void CommentedFrames::on_answered(const Record& record) {
  Qp& qp = qp_of(record);
  Held* const held = at(qp.current);
  const auto refused = qp.last.find(Kind::packet_refused);
  if (held == nullptr || refused == qp.last.end() || refused->second.psn != record.psn) return;
  held->comment.resize(std::min(held->comment.size(), qp.refusal_at));
  say(qp.current, refusal_text(names_, refused->second, &record));
}

void CommentedFrames::remark(const Record& record, const std::string& text) {
  say(qp_of(record).current, text);
}

void CommentedFrames::take_record(const Record& record) {
  switch (record.kind) {
    case Kind::name:
      names_.add(std::bit_cast<NameRecord>(record));
      return;
    case Kind::qp_created:
      qp_of(record) = {};
      qp_of(record).program = record.program;
      return;
    case Kind::qp_destroyed:
      qps_.erase({record.device, record.qpn});
      return;
    case Kind::packet_sent:
      return on_sent(record);
    case Kind::packet_lost:
      return on_lost(record);
    case Kind::packet_received:
      return on_received(record);
    case Kind::packet_refused:
      return on_refused(record);
    case Kind::packet_dropped:
      if (record.qpn != 0)
        say(find(record.qpn, record, kNoDevice, record.device),
            "dropped: " + std::string(to_text(record.cause)));
      return;
    case Kind::nak_sent:
    case Kind::rnr_sent:
      return on_answered(record);
    case Kind::ack_timeout:
    case Kind::rnr_received:
    case Kind::nak_received:
    case Kind::implied_nak:
      qp_of(record).last[record.kind] = record;
      return;
    case Kind::duplicate:
      return remark(record, "a duplicate, executed before");
    case Kind::placed_ahead:
      return remark(record, "taken out of order");
    case Kind::stale_ack:
      return remark(record, "tells nothing new");
    default:
      return;
  }
}

// --- Frames ---

void CommentedFrames::take_frame(std::span<const std::byte> frame, uint64_t unix_ns,
                                 uint64_t now_ns) {
  const uint64_t number = first_ + held_.size();
  Held& held = held_.emplace_back();
  held.bytes.assign(frame.begin(), frame.end());
  held.unix_ns = unix_ns;
  held.ns = now_ns;
  held_bytes_ += frame.size();
  wire::Packet packet;
  if (wire::parse_frame(held.bytes, packet) == wire::ParseError::none) {
    held.from = device_of_(packet.ip.source);
    held.to = device_of_(packet.ip.destination);
    held.opcode = packet.bth.opcode;
    held.has_key = true;
    held.key = key_of(packet.bth.destination_qp.value, packet.bth.psn.value());
    const auto [last, is_new] = last_of_key_.try_emplace(held.key, number);
    if (!is_new) held.before = std::exchange(last->second, number);
    if (const auto note = notes_.find(held.key << 8 | held.opcode); note != notes_.end()) {
      held.comment = std::move(note->second);
      notes_.erase(note);
    }
  }
  while (held_bytes_ > kMaxHeldBytes) write_first();
}

// Described before its first frame.
uint32_t CommentedFrames::interface_of(uint16_t device) {
  const auto [place, is_new] =
      interfaces_.try_emplace(device, static_cast<uint32_t>(interfaces_.size()));
  if (is_new)
    write_(
        pcapng::interface(device == kNoDevice ? "elsewhere" : names_.text(Table::device, device)));
  return place->second;
}

void CommentedFrames::write_first() {
  Held& held = held_.front();
  const bool goes_out = held.from != kNoDevice;
  const pcapng::PacketHead head{
      .interface = interface_of(goes_out ? held.from : held.to),
      .unix_ns = held.unix_ns,
      .whole_bytes = held.bytes.size(),
      .direction = goes_out ? pcapng::Direction::outbound : pcapng::Direction::inbound};
  write_(pcapng::packet(head, held.bytes, held.comment));
  if (held.has_key)
    if (const auto last = last_of_key_.find(held.key);
        last != last_of_key_.end() && last->second == first_)
      last_of_key_.erase(last);
  held_bytes_ -= held.bytes.size();
  held_.pop_front();
  ++first_;
}

void CommentedFrames::write_due(uint64_t now_ns) {
  while (!held_.empty() && held_.front().ns + kHoldNs <= now_ns) write_first();
}

void CommentedFrames::write_all() {
  while (!held_.empty()) write_first();
}

}  // namespace rocemu::trace
