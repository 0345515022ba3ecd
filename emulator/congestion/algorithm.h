// A congestion control that can be exchanged: what an algorithm hears of one flow, and what it
// says. A flow is what one QP sends. The algorithm neither sends nor holds frames, and has no
// clock: the transport tells it what happens, keeps its timer, and paces what leaves by what it
// says.
//
// Bytes are those of whole frames, from the Ethernet header through the ICRC. Rates are in bits a
// second of such bytes. Calls come in the order of their times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"

namespace rocemu::congestion {

inline constexpr uint64_t kUnlimited = ~uint64_t{0};

// HopTelemetry is what a switch on the way has written into a packet when it sent it on.
struct HopTelemetry {
  uint64_t queue_bytes = 0;    // in the port's queue
  uint64_t tx_bytes = 0;       // bytes that the port has sent so far, modulo 2^32
  uint64_t timestamp_ns = 0;   // by the switch's clock, modulo 2^32
  uint64_t link_rate_bps = 0;  // the port's
};

// Packets that were in flight have been acknowledged.
struct Acknowledgement {
  TimeNs now = 0;
  uint64_t bytes = 0;
  uint32_t packets = 0;
  uint64_t in_flight_bytes = 0;             // those that are left unacknowledged
  std::optional<TimeNs> rtt_ns = {};        // the newest packet's, unless it was sent twice
  bool ecn_echo = false;                    // the answer says that congestion was met (BECN)
  std::span<const HopTelemetry> hops = {};  // from the sender on; empty: there is none
  uint32_t hops_passed = 0;                 // switches on the way; 0: not known
  uint32_t path = 0;                        // another number: the packet went another way
};

// Needs says what an algorithm wants of the transport and the network.
struct Needs {
  bool ecn = false;           // packets that leave with data are marked ECT(0)
  bool every_answer = false;  // every packet asks for an acknowledgement
  bool telemetry = false;     // switches write HopTelemetry into packets
  bool hop_count = false;     // or say there that they were passed, if no more is asked for
};

// The flow that an algorithm is made for.
struct Flow {
  uint64_t line_rate_bps = 0;    // that of the way out: no rate above it makes sense
  uint32_t max_frame_bytes = 0;  // that of a packet with the path's whole MTU
  uint32_t seed = 0;             // for what is left to chance; differs between flows
};

// One line of what an algorithm shows of itself: rates in Mbit/s, times in us, as in parameters.
struct NamedValue {
  std::string name;
  double value = 0;
};

class Algorithm {
 public:
  Algorithm() = default;
  virtual ~Algorithm() = default;
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;

  // A frame of the flow has been built, for the first time or again: requests, and the answers to
  // READs.
  virtual void on_sent(TimeNs /*now*/, uint32_t /*bytes*/) {}
  virtual void on_acknowledged(const Acknowledgement&) {}
  // A congestion notification packet has come (IBTA vol 1, annex A17).
  virtual void on_cnp(TimeNs /*now*/) {}
  // A packet was lost: a NAK says so, an answer implies it, or one is long overdue.
  virtual void on_loss(TimeNs /*now*/) {}
  // No answer came within the ACK timeout.
  virtual void on_timeout(TimeNs /*now*/) {}
  // Called at deadline() or later. It must move the deadline beyond `now`.
  virtual void on_timer(TimeNs /*now*/) {}
  virtual TimeNs deadline() const { return kNever; }

  // The rate at which frames may leave. At the line's rate and above, nothing is paced.
  virtual uint64_t rate_bps() const { return kUnlimited; }
  // The bytes that may be in flight. At least one packet may, whatever this says: less than a
  // packet in a round trip is said by the rate.
  virtual uint64_t window_bytes() const { return kUnlimited; }

  // Values for status that help somebody who wonders why the flow has this rate.
  virtual std::vector<NamedValue> view(TimeNs /*now*/) const { return {}; }
};

}  // namespace rocemu::congestion
