// Makes of records what they tell: QPs, the connections between them, packets from one end to the
// other, requests from post to poll. All pictures of a trace are made from a Story.
//
// A packet is sent by one QP and seen by another, which are two records, perhaps of two NICs. They
// are one Packet when destination QPN, PSN and opcode agree: of several that could be it, the one
// that was sent first and has not been seen yet. What one end alone has recorded is a Packet, too.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulator/trace/format/reader.h"
#include "emulator/trace/format/record.h"

namespace rocemu::trace {

// A record, by its place in Trace::records; or a part of the story, by its place there.
using At = uint32_t;
inline constexpr At kNowhere = ~At{0};

struct Qp {
  uint16_t device = kNoDevice;  // kNoDevice: it is another NIC's
  uint32_t qpn = 0;
  uint16_t program = kNoProgram;
  uint8_t type = 0;    // verbs::qp_type; 0: the trace does not tell
  At peer = kNowhere;  // the QP that it is connected to, or that it last spoke with
  At created = kNowhere;
  bool has_records = false;     // not only spoken of by others
  std::vector<At> requests;     // of Story::requests
  std::vector<At> connections;  // of Story::connections
};

// Two QPs, between which packets go. Datagrams make one for each pair.
struct Connection {
  At ends[2] = {kNowhere, kNowhere};
  uint32_t packets = 0;
};

struct Packet {
  At sent = kNowhere;
  At lost = kNowhere;     // an impairment took or spoilt it
  At arrived = kNowhere;  // packet_received or packet_dropped
  At placed = kNowhere;   // its data are where they belong
  At refused = kNowhere;  // by the QP that looked at it
  At drew = kNowhere;     // what the receiver said to it: nak_sent, rnr_sent, or that packet itself
  // A NAK has here the packet that it speaks of, and what is sent again the event that is to blame.
  At because = kNowhere;
  At connection = kNowhere;
  At request = kNowhere;    // of the requester
  bool from_first = true;   // from ends[0] to ends[1]
  bool is_copy = false;     // the network made it of the packet that `sent` speaks of
  std::vector<At> remarks;  // records of the receiver that speak of it

  // Returns the record that says what is in the packet's header.
  At header() const { return sent != kNowhere ? sent : arrived != kNowhere ? arrived : lost; }
};

struct Request {
  At qp = kNowhere;  // of a shared receive: kNowhere until it is known
  bool is_receive = false;
  At posted = kNowhere;
  At taken = kNowhere;
  At acknowledged = kNowhere;
  At pushed = kNowhere;  // or lost, because the CQ was full
  At polled = kNowhere;
  std::vector<At> packets;  // of Story::packets

  // The first of its records, where wr_id and length are.
  At first() const {
    for (const At at : {posted, taken, pushed, polled})
      if (at != kNowhere) return at;
    return acknowledged;
  }
};

struct Story {
  const Trace* trace = nullptr;
  std::vector<Qp> qps;
  std::vector<Connection> connections;
  std::vector<Packet> packets;    // in the order of their headers' records
  std::vector<Request> requests;  // in the order of their first records

  const Record& record(At at) const { return trace->records[at]; }
  uint64_t time_ns(At at) const { return record(at).time_ns; }
  // kNowhere: the story has none.
  At find_qp(uint16_t device, uint32_t qpn) const;

  std::map<std::pair<uint16_t, uint32_t>, At> qp_index;
};

// The trace outlives the story. Records beyond 2^32 - 1 are left out.
Story tell(const Trace& trace);

}  // namespace rocemu::trace
