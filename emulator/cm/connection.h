// A connection as the communication manager has it, or a lookup of a datagram service (SIDR).
#pragma once

#include <cstdint>

#include "base/time.h"
#include "emulator/cm/types.h"
#include "emulator/wire/cm_message.h"

namespace rocemu::cm {

// A number given here that names a connection on the wire: the communication id, or a SIDR request
// id.
using CommId = uint32_t;

// The states of IBTA vol 1, 12.9.5 and 12.9.7 that are told apart here. The "MRA" states are those
// that they come from, with a later deadline.
enum class ConnectionState : uint8_t {
  req_sent,
  req_received,
  rep_sent,
  rep_received,
  established,
  dreq_sent,
  timewait,
  sidr_req_sent,
  sidr_req_received,
  sidr_answered,  // the answer is kept for requests that are repeated
  closed,         // nothing more happens on the wire
};

// The values that REQ and REP have agreed on, to which the QPs of both sides have to be set (IBTA
// vol 1, 12.6.5 and 12.6.8).
struct NegotiatedQp {
  wire::CmTransport transport = wire::CmTransport::rc;
  wire::Qpn local_qpn{};
  wire::Qpn remote_qpn{};
  wire::Psn send_psn{};
  wire::Psn receive_psn{};
  uint8_t path_mtu = 0;     // enum ibv_mtu
  uint8_t ack_timeout = 0;  // coded: 4.096 us * 2^code
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;
};

// A message that is sent again until it is answered, or one kept for a peer that repeats its
// question.
struct Retransmission {
  wire::MadBytes unanswered{};
  uint8_t sends_left = 0;
  TimeNs wait_ns = 0;  // before the next time
  TimeNs longest_wait_ns = 0;
  TimeNs deadline_ns = kNever;  // also that of TIMEWAIT and of an answer that is kept
};

struct Connection {
  CommId id = 0;
  ConnectionState state = ConnectionState::closed;
  bool owned = true;    // an id still wants its events
  bool active = false;  // this side sent the REQ …
  bool asking = false;  // … and waits for the answer
  Route route;
  uint64_t program = 0;  // the one whose share it counts among; 0: nobody's yet
  uint32_t remote_id = 0;
  uint64_t remote_guid = 0;  // 0: not known yet
  uint64_t local_guid = 0;
  uint64_t transaction_id = 0;
  uint64_t service_id = 0;
  NegotiatedQp qp;
  Retransmission retransmission;
};

}  // namespace rocemu::cm
