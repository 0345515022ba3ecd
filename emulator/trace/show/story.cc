#include "emulator/trace/show/story.h"

#include <algorithm>
#include <limits>

#include "emulator/trace/show/packet_matcher.h"
#include "emulator/trace/show/request_matcher.h"
#include "emulator/trace/show/vocabulary.h"
#include "emulator/wire/headers.h"

namespace rocemu::trace {

namespace {

struct Refusal {
  At record = kNowhere;
  At packet = kNowhere;
};

// Memory is what the teller remembers of a QP while it reads on.
struct Memory {
  At current = kNowhere;  // the packet that the QP looks at
  // Packets whose data have not been placed yet, by PSN: others are looked at meanwhile.
  std::map<uint32_t, At> to_place;
  // The refusals that have drawn the last NAK of a PSN sequence error and the last RNR NAK, and the
  // last of each syndrome. What is sent may be sent after others have been refused.
  Refusal behind_sequence_nak, behind_rnr_nak;
  std::map<uint8_t, Refusal> by_syndrome;
  std::array<At, 256> last_of_kind;  // by Kind
  Memory() { last_of_kind.fill(kNowhere); }
  At& last(Kind kind) { return last_of_kind[static_cast<uint8_t>(kind)]; }
};

class Teller {
 public:
  explicit Teller(const Trace& trace) : trace_(trace), packets_(story_), requests_(story_) {
    story_.trace = &trace;
  }

  Story tell() {
    const size_t count =
        std::min<size_t>(trace_.records.size(), std::numeric_limits<At>::max() - 1);
    for (size_t i = 0; i < count; ++i) take(static_cast<At>(i));
    for (const Packet& packet : story_.packets)
      if (packet.connection != kNowhere) ++story_.connections[packet.connection].packets;
    return std::move(story_);
  }

 private:
  At qp_of(uint16_t device, uint32_t qpn);
  At peer_of(const Record& record, At own);
  std::pair<At, bool> connect(At from, At to);
  void take(At at);
  void take_of_qp(At at, At qp);
  void on_state(const Record& record, At qp);
  void on_sent(At at, At qp);
  void on_arrived(At at, At qp);
  void on_lost(At at);
  void remark(At at, At qp);
  void on_placed(At at, At qp);
  Refusal refusal_behind(const Record& nak, At qp);
  At blame(const Record& record, At qp);

  const Trace& trace_;
  Story story_;
  PacketMatcher packets_;
  RequestMatcher requests_;
  std::vector<Memory> memories_;  // by QP
  std::map<std::pair<At, At>, At> connection_index_;
};

At Teller::qp_of(uint16_t device, uint32_t qpn) {
  const auto [place, is_new] =
      story_.qp_index.try_emplace({device, qpn}, static_cast<At>(story_.qps.size()));
  if (is_new) {
    Qp& qp = story_.qps.emplace_back();
    qp.device = device;
    qp.qpn = qpn;
    memories_.emplace_back();
  }
  return place->second;
}

// Whom a packet goes to, or comes from: what the record says, or else whom the QP is connected to.
At Teller::peer_of(const Record& record, At own) {
  const At known = story_.qps[own].peer;
  if (known != kNowhere) {
    const Qp& peer = story_.qps[known];
    if (record.peer_qpn == 0) return known;
    if (record.peer_qpn == peer.qpn &&
        (record.peer_device == kNoDevice || record.peer_device == peer.device))
      return known;
  }
  const At peer = qp_of(record.peer_device, record.peer_qpn);
  if (story_.qps[own].type == 0 || known == kNowhere) story_.qps[own].peer = peer;
  return peer;
}

std::pair<At, bool> Teller::connect(At from, At to) {
  const std::pair<At, At> ends = std::minmax(from, to);
  const auto [place, is_new] =
      connection_index_.try_emplace(ends, static_cast<At>(story_.connections.size()));
  if (is_new) {
    story_.connections.push_back({.ends = {ends.first, ends.second}});
    for (const At end : {ends.first, ends.second})
      if (story_.qps[end].connections.empty() ||
          story_.qps[end].connections.back() != place->second)
        story_.qps[end].connections.push_back(place->second);
  }
  return {place->second, from == ends.first};
}

void Teller::on_state(const Record& record, At qp) {
  if (record.peer_qpn == 0) return;
  const At peer = qp_of(record.peer_device, record.peer_qpn);
  story_.qps[qp].peer = peer;
  connect(qp, peer);
}

// Returns the refusal that a NAK speaks of.
Refusal Teller::refusal_behind(const Record& nak, At qp) {
  Memory& memory = memories_[qp];
  if (wire::syndrome::is_rnr(nak.code)) return memory.behind_rnr_nak;
  if (nak.code == wire::syndrome::kNakSequence) return memory.behind_sequence_nak;
  const auto found = memory.by_syndrome.find(nak.code);
  if (found != memory.by_syndrome.end()) return found->second;
  return {memory.last(Kind::packet_refused), kNowhere};
}

// The event because of which a packet is sent again, or a NAK at all.
At Teller::blame(const Record& record, At qp) {
  Memory& memory = memories_[qp];
  if ((record.flags & flag::kRetransmission) == 0) return kNowhere;
  switch (record.cause) {
    case Cause::ack_timeout:
      return memory.last(Kind::ack_timeout);
    case Cause::rnr_nak:
      return memory.last(Kind::rnr_received);
    case Cause::sequence_nak:
    case Cause::selective:
      return memory.last(Kind::nak_received);
    case Cause::implied_nak:
      return memory.last(Kind::implied_nak);
    default:
      return memory.last(Kind::retransmission);
  }
}

void Teller::on_sent(At at, At qp) {
  const Record& record = trace_.records[at];
  const auto [connection, from_first] = connect(qp, peer_of(record, qp));
  const At packet = packets_.on_sent(at);
  Packet& it = story_.packets[packet];
  it.connection = connection;
  it.from_first = from_first;
  it.because = blame(record, qp);
  if ((record.flags & flag::kHasAeth) != 0 && refuses(record.code)) {
    const Refusal refusal = refusal_behind(record, qp);
    story_.packets[packet].because = refusal.record;
    if (refusal.packet != kNowhere) story_.packets[refusal.packet].drew = at;
  }
  if ((record.flags & flag::kResponse) == 0) requests_.add_packet(record, qp, packet);
}

void Teller::on_arrived(At at, At qp) {
  const Record& record = trace_.records[at];
  const At packet = packets_.on_arrived(at);
  // Both ends are known now, which the sender's record alone need not tell.
  At from = kNowhere;
  if (const At sent = story_.packets[packet].sent; sent != kNowhere) {
    from = qp_of(trace_.records[sent].device, trace_.records[sent].qpn);
    story_.qps[from].peer = qp;
  } else {
    from = peer_of(record, qp);
  }
  const auto [connection, from_first] = connect(from, qp);
  Packet& it = story_.packets[packet];
  it.connection = connection;
  it.from_first = from_first;
  if ((record.flags & flag::kResponse) != 0) requests_.add_packet(record, qp, packet);
  if (record.kind != Kind::packet_received) return;
  memories_[qp].current = packet;
  if (record.length_bytes != 0) memories_[qp].to_place[record.psn] = packet;
}

void Teller::on_lost(At at) {
  const Record& record = trace_.records[at];
  const At packet = packets_.on_lost(at);
  if (story_.packets[packet].connection != kNowhere) return;
  At from = qp_of(record.device, record.qpn), to = kNowhere;
  if ((record.flags & flag::kArriving) != 0) {
    to = from;
    from = peer_of(record, to);
  } else {
    to = qp_of(record.peer_device, record.peer_qpn);
  }
  const auto [connection, from_first] = connect(from, to);
  Packet& it = story_.packets[packet];
  it.connection = connection;
  it.from_first = from_first;
}

// The receiver's records that follow a packet's arrival speak of it, until it looks at the next.
void Teller::remark(At at, At qp) {
  const Record& record = trace_.records[at];
  Memory& memory = memories_[qp];
  if (memory.current == kNowhere) return;
  Packet& packet = story_.packets[memory.current];
  packet.remarks.push_back(at);
  if (record.kind == Kind::packet_refused) packet.refused = at;
  if (record.kind == Kind::nak_sent || record.kind == Kind::rnr_sent) packet.drew = at;
  const Refusal refusal{packet.refused != kNowhere ? packet.refused : at, memory.current};
  if (record.kind == Kind::packet_refused) memory.by_syndrome[record.code] = refusal;
  if (record.kind == Kind::rnr_sent) memory.behind_rnr_nak = refusal;
  if (record.kind == Kind::nak_sent && record.code == wire::syndrome::kNakSequence)
    memory.behind_sequence_nak = refusal;
}

void Teller::on_placed(At at, At qp) {
  auto& to_place = memories_[qp].to_place;
  const auto found = to_place.find(trace_.records[at].psn);
  if (found == to_place.end()) return;
  story_.packets[found->second].placed = at;
  story_.packets[found->second].remarks.push_back(at);
  to_place.erase(found);
}

void Teller::take_of_qp(At at, At qp) {
  const Record& record = trace_.records[at];
  memories_[qp].last(record.kind) = at;
  if (record.program != kNoProgram && (record.kind == Kind::qp_created ||
                                       record.kind == Kind::posted || record.kind == Kind::taken))
    story_.qps[qp].program = record.program;
  switch (record.kind) {
    case Kind::qp_created:
      story_.qps[qp].type = record.code;
      story_.qps[qp].created = at;
      break;
    case Kind::qp_state:
      on_state(record, qp);
      break;
    case Kind::packet_sent:
      on_sent(at, qp);
      break;
    case Kind::packet_received:
      on_arrived(at, qp);
      break;
    case Kind::packet_refused:
    case Kind::nak_sent:
    case Kind::nak_received:
    case Kind::rnr_sent:
    case Kind::rnr_received:
    case Kind::implied_nak:
    case Kind::duplicate:
    case Kind::out_of_sequence:
    case Kind::placed_ahead:
    case Kind::stale_ack:
      remark(at, qp);
      break;
    case Kind::data_placed:
      on_placed(at, qp);
      break;
    case Kind::acknowledged:
      requests_.on_acknowledged(at, qp);
      remark(at, qp);
      break;
    default:
      requests_.take(at, qp);
  }
}

void Teller::take(At at) {
  const Record& record = trace_.records[at];
  if (record.kind == Kind::packet_lost) return on_lost(at);
  if (record.kind == Kind::packet_dropped) {
    if (record.qpn != 0) return on_arrived(at, qp_of(record.device, record.qpn));
    packets_.on_arrived(at);
    return;
  }
  if (record.device == kNoDevice) return;
  if (record.qpn == 0) return requests_.take(at, kNowhere);
  const At qp = qp_of(record.device, record.qpn);
  story_.qps[qp].has_records = true;
  take_of_qp(at, qp);
}

}  // namespace

At Story::find_qp(uint16_t device, uint32_t qpn) const {
  const auto place = qp_index.find({device, qpn});
  return place == qp_index.end() ? kNowhere : place->second;
}

Story tell(const Trace& trace) { return Teller(trace).tell(); }

}  // namespace rocemu::trace
