#include "emulator/trace/show/packet_matcher.h"

#include <algorithm>

namespace rocemu::trace {

At PacketMatcher::add() {
  story_.packets.emplace_back();
  return static_cast<At>(story_.packets.size() - 1);
}

bool PacketMatcher::may_be_seen_by(At packet, const Record& arrival) const {
  const Record& sent = story_.record(story_.packets[packet].sent);
  if (sent.peer_device != kNoDevice && sent.peer_device != arrival.device) return false;
  if (arrival.peer_device != kNoDevice && arrival.peer_device != sent.device) return false;
  return arrival.peer_qpn == 0 || sent.qpn == 0 || arrival.peer_qpn == sent.qpn;
}

At PacketMatcher::on_sent(At at) {
  const Record& record = story_.record(at);
  Alike& alike = alike_[key_of(record.peer_qpn, record)];
  if (alike.early != kNowhere) {
    const At packet = alike.early;
    alike.early = kNowhere;
    const Record& arrival = story_.record(story_.packets[packet].arrived);
    if (record.time_ns - arrival.time_ns <= kClockSlackNs &&
        (arrival.peer_qpn == 0 || arrival.peer_qpn == record.qpn)) {
      story_.packets[packet].sent = at;
      alike.settled = packet;
      return packet;
    }
  }
  const At packet = add();
  story_.packets[packet].sent = at;
  if (alike.under_way.size() >= kMaxUnderWay) alike.under_way.erase(alike.under_way.begin());
  alike.under_way.push_back(packet);
  return packet;
}

// The network sees frames, whose headers do not say which QP sent them. It is the last one: a
// packet is lost as soon as it is sent.
At PacketMatcher::on_lost(At at) {
  const Record& record = story_.record(at);
  const bool is_arriving = (record.flags & flag::kArriving) != 0;
  Alike& alike = alike_[key_of(is_arriving ? record.qpn : record.peer_qpn, record)];
  const auto fits = [&](At packet) {
    const Record& sent = story_.record(story_.packets[packet].sent);
    if (story_.packets[packet].lost != kNowhere) return false;
    if (is_arriving) return may_be_seen_by(packet, record);
    return sent.device == record.device && (record.qpn == 0 || record.qpn == sent.qpn);
  };
  const auto found = std::find_if(alike.under_way.rbegin(), alike.under_way.rend(), fits);
  if (found == alike.under_way.rend()) {
    const At packet = add();
    story_.packets[packet].lost = at;
    return packet;
  }
  const At packet = *found;
  story_.packets[packet].lost = at;
  // What is corrupted goes on, and arrives.
  if (record.cause != Cause::corrupted) alike.under_way.erase(std::next(found).base());
  return packet;
}

At PacketMatcher::on_arrived(At at) {
  const Record& record = story_.record(at);
  Alike& alike = alike_[key_of(record.qpn, record)];
  const auto found = std::ranges::find_if(
      alike.under_way, [&](At packet) { return may_be_seen_by(packet, record); });
  if (found != alike.under_way.end()) {
    const At packet = *found;
    alike.under_way.erase(found);
    alike.settled = packet;
    story_.packets[packet].arrived = at;
    return packet;
  }
  const At packet = add();
  story_.packets[packet].arrived = at;
  if (alike.settled == kNowhere) {
    alike.early = packet;
    return packet;
  }
  const Packet& original = story_.packets[alike.settled];
  Packet& copy = story_.packets[packet];
  copy.is_copy = true;
  copy.sent = original.sent;
  copy.connection = original.connection;
  copy.from_first = original.from_first;
  return packet;
}

}  // namespace rocemu::trace
