// ControlledFlow is what one QP has under a congestion control that the device has chosen: the
// algorithm, the pace that keeps frames to its rate, and the account of packets in flight, from
// which the algorithm hears.
//
// 1. The endpoint asks before each frame of the QP, whether of its requester or a READ's answer,
//    and tells of each that was built. ACKs and NAKs do not wait.
// 2. A rate is kept frame by frame, to a fraction of a nanosecond; at the line's rate the line
//    itself keeps it.
// 3. A window of bytes allows so many packets of the path's whole MTU, and one at least: what is in
//    flight is counted by PSNs.
// 4. A round trip is that of the newest packet that an answer acknowledges, unless that was sent
//    twice (Karn's rule, RFC 6298, 3). The answer to a READ is none: it takes as long as its data.
// 5. An ACK is asked for so often that one comes within kAckWithinNs at the rate as it is: a slow
//    flow would else be without one for longer than the ACK timeout.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/time.h"
#include "emulator/congestion/algorithm.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/transport/qp/send_pace.h"
#include "emulator/transport/qp/telemetry_exchange.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class ControlledFlow {
 public:
  ControlledFlow(std::unique_ptr<congestion::Algorithm> algorithm, const congestion::Needs& needs,
                 const congestion::Flow& flow)
      : algorithm_(std::move(algorithm)), needs_(needs), flow_(flow), telemetry_(needs) {}
  // Null when the limits name no algorithm, or that has no memory for another flow.
  static std::unique_ptr<ControlledFlow> make(const TransportLimits& limits,
                                              const QpAttributes& attributes, wire::Qpn qpn);

  const congestion::Algorithm& algorithm() const { return *algorithm_; }
  uint64_t cnps() const { return cnps_; }
  // The rate of what is sent now: the line's at most.
  uint64_t rate_bps() const { return std::min(algorithm_->rate_bps(), flow_.line_rate_bps); }

  // For the endpoint: rule 1.
  bool may_send(TimeNs now) { return pace_.allows(now); }
  // kNever: no frame is held back.
  TimeNs held_until() const { return pace_.deadline(); }
  void on_frame_sent(TimeNs now, uint32_t bytes) {
    algorithm_->on_sent(now, bytes);
    pace_.on_sent(now, time_of(bytes));
  }
  bool wants_ecn() const { return needs_.ecn; }
  void on_cnp(TimeNs now) {
    ++cnps_;
    algorithm_->on_cnp(now);
  }
  TimeNs deadline() const { return std::min(pace_.deadline(), algorithm_->deadline()); }
  void on_timer(TimeNs now) {
    pace_.on_timeout(now);
    if (algorithm_->deadline() <= now) algorithm_->on_timer(now);
  }

  // For the requester: what may be in flight, and what becomes of it.
  uint32_t packets_allowed(uint32_t limit) const;
  uint32_t packets_to_acknowledge(uint32_t window) const;
  void on_request_sent(TimeNs now, wire::Psn psn, uint32_t packets, bool again, uint32_t bytes);
  // An answer has come, of which on_acknowledged() may follow.
  void note_answer(const wire::Packet& packet) {
    ecn_echo_ = packet.bth.becn;
    telemetry_.on_answer(packet.telemetry, TelemetryEcho::travels_with(packet));
  }
  // The size of the telemetry record that a SEND or WRITE bears, and the record itself.
  uint32_t telemetry_bytes() const { return telemetry_.bytes(); }
  void write_telemetry(std::byte* to) { telemetry_.write(to); }
  // Everything before `una` has been answered.
  void on_acknowledged(TimeNs now, wire::Psn una);
  void on_loss(TimeNs now) { algorithm_->on_loss(now); }
  void on_ack_timeout(TimeNs now) {
    telemetry_.on_ack_timeout();
    algorithm_->on_timeout(now);
  }

 private:
  static constexpr TimeNs kAckWithinNs = 500'000;

  struct SentPacket {
    TimeNs at;  // kNever: no measure of a round trip
    wire::Psn end;
    uint32_t bytes;
  };

  TimeNs time_of(uint32_t bytes);

  std::unique_ptr<congestion::Algorithm> algorithm_;
  const congestion::Needs needs_;
  const congestion::Flow flow_;
  SendPace pace_;
  uint64_t unpaced_bits_ns_ = 0;      // the remainder of a division by the rate: rule 2
  RingBuffer<SentPacket> in_flight_;  // as many as the window has packets
  uint64_t in_flight_bytes_ = 0;
  wire::Psn sent_again_end_;  // packets that end here or before count as sent twice …
  bool sent_again_ = false;   // … while this is true
  bool ecn_echo_ = false;
  TelemetryOffer telemetry_;
  uint64_t cnps_ = 0;
};

}  // namespace rocemu::transport
