// Names what a QP waits for, and the facts by which that is known: for people who look at the NIC.
// The facts are put together when somebody asks; the rules are qp/wait_reason.h's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace rocemu::transport {

enum class WaitReason : uint8_t {
  none,            // nothing is under way
  state,           // requests are posted, but the QP's state forbids to take them
  rnr,             // the peer had no receive: its RNR timer runs
  window,          // as many packets are in flight as congestion control allows
  fence,           // a fenced request waits for READs and atomics before it
  reads,           // as many READs and atomics are outstanding as max_rd_atomic allows
  earlier,         // a local or a faulty request waits until those before it are over
  pace,            // congestion control holds the next packet back
  rate_limit,      // the rate that the program has set does
  turn,            // nothing keeps it: it sends when its turn at the port comes
  answer,          // all is sent: the peer has to answer
  retransmission,  // what is in flight has been sent again, and there was no progress since
  receives,        // the peer has been told that no receive is posted here
  polls,           // completions lie in its CQ that the program does not take
};

inline constexpr std::array<std::string_view, static_cast<size_t>(WaitReason::polls) + 1>
    kWaitReasonNames = {"none",   "state",          "rnr",      "window",     "fence",
                        "reads",  "earlier",        "pace",     "rate_limit", "turn",
                        "answer", "retransmission", "receives", "polls"};

struct WaitFacts {
  // Next says what stands next to be sent, if anything does.
  enum class Next : uint8_t {
    none,
    unknown,  // a request that is posted and has not been looked at
    packet,
    not_sent,  // a local or a faulty request, which is none for the wire
  };

  // These are the requester's.
  bool may_take = false;  // the state lets it take requests off its queue
  bool may_send = false;  // … and send packets
  Next next = Next::none;
  bool window_is_full = false;    // for the next packet
  bool fenced = false;            // the next packet's request is, and has to wait
  bool reads_are_full = false;    // the next packet's request waits for one to end
  uint32_t posted = 0;            // requests that stand in the send queue, not taken
  uint32_t requests = 0;          // taken, not completed
  uint32_t completed = 0;         // modulo 2^32, since the QP was made or reset
  uint32_t window_packets = 0;    // that may be in flight now; 0: nothing limits them
  uint32_t retries = 0;           // sent again so often since there was progress
  TimeNs oldest_age_ns = 0;       // since the oldest request was taken; 0 when there is none
  TimeNs rnr_left_ns = 0;         // 0: no wait for a receiver
  TimeNs pace_left_ns = 0;        // 0: congestion control holds nothing back
  TimeNs rate_limit_left_ns = 0;  // 0: the program's rate holds nothing back

  // These are the responder's.
  uint32_t answered_messages = 0;  // modulo 2^24: the MSN (IBTA vol 1, 9.7.7.1)
  uint32_t queued_responses = 0;
  bool told_not_ready = false;  // its last word was an RNR NAK

  // These are the device's, which knows queues.
  uint32_t receives_posted = 0;     // in its own receive queue or its SRQ
  uint32_t unread_completions = 0;  // in its CQs, whosesoever they are
};

}  // namespace rocemu::transport
