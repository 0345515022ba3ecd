// The seam between a reliable requester and the rule that says how much it may send. A rule is told
// what happens to the packets of one QP, and answers two questions: how many of them may be in
// flight (sent and not acknowledged), and how far apart they leave. It neither sends, nor holds
// packets, nor keeps a timer.
//
// The requester holds the rule as a member and calls it for every packet, so that a rule is bound
// when the program is compiled: a type that has these functions, and no virtual one.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace rocemu::congestion {

template <class Rule>
concept CongestionControl = requires(Rule rule, const Rule& state, TimeNs now, uint32_t packets,
                                     std::optional<TimeNs> rtt) {
  // The number of packets that may be in flight: at least one.
  { state.packets() } -> std::same_as<uint32_t>;
  // The time from the packet that leaves now to the next one; 0: as soon as may be.
  { rule.interval_ns() } -> std::same_as<TimeNs>;
  // So many packets have been added to the burst that leaves now, for the first time or again.
  rule.on_sent(now, packets);
  // So many packets that were in flight have been acknowledged. `rtt`: the round trip of one of
  // them, when it was measured (only packets that were sent once are).
  rule.on_acknowledged(now, packets, rtt);
  // A packet was lost and packets behind it arrived: a NAK says so, or an answer implies it.
  rule.on_nak(now);
  // An answer is overdue by the round trips so far, and a packet is sent again for that: it may be
  // lost, or late.
  rule.on_overdue(now);
  // No answer came within the ACK timeout.
  rule.on_timeout(now);
};

}  // namespace rocemu::congestion
