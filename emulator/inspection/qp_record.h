// An inspection's record of a QP: since it was last reset, its receives and its peer; and its
// requests.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "emulator/inspection/meeting.h"
#include "emulator/inspection/requests.h"

namespace rocemu::inspection {

// Counts of receives that messages took, and of messages that found none posted: those were
// answered with an RNR NAK, or dropped (UC and UD).
struct Receives {
  uint32_t taken = 0;
  uint32_t missing_before_first = 0;  // before any had been taken
  uint32_t missing = 0;               // in all
  bool peer_had_none = false;         // this end gave up for want of one at the peer

  void note_missing() {
    ++missing;
    if (taken == 0) ++missing_before_first;
  }
};

// The request of the peer that this QP is carrying out.
struct CarriedOut {
  bool may_begin = false;  // a packet has come for which none was looked for yet
  QpPlace requester{};
  uint64_t number = 0;  // 0: it is not known which
  uint32_t written_bytes = 0;
};

struct QpRecord {
  wire::Qpn qpn{};
  Meeting meeting{};
  bool looked_for_peer = false;
  Receives receives{};
  Requests requests{};
  CarriedOut carried_out{};

  void begin_anew() {
    meeting = {};
    looked_for_peer = false;
    receives = {};
    requests.reset();
    carried_out = {};
  }
};

}  // namespace rocemu::inspection
