// One reliable-connection QP: its state, and the requester and responder that make it up.
#pragma once

#include "emulator/transport/burst.h"
#include "emulator/transport/qp_context.h"
#include "emulator/transport/rc_requester.h"
#include "emulator/transport/rc_responder.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class RcQp {
 public:
  RcQp(Memory& memory, EventSink& events, Settlement& settlement, Counters& counters,
       const TransportLimits& limits, wire::Qpn qpn, const QpResources& resources);
  RcQp(const RcQp&) = delete;
  RcQp& operator=(const RcQp&) = delete;

  wire::Qpn qpn() const { return context_.qpn; }
  QpState state() const { return context_.state; }
  bool draining() const;
  QpLoad load() const;

  void modify(QpState state, const QpAttributes& attributes);
  void on_packet(TimeNs now, const wire::Packet& packet);
  void on_timeout(TimeNs now);

  // Adds one frame to the burst. Responder and requester take turns.
  Turn transmit(TimeNs now, Burst& burst);
  TimeNs deadline() const;

  // To ERROR: everything outstanding completes with a flush error.
  void enter_error();
  // Completes with a flush error what stands in the queues. Precondition: state ERROR.
  void flush_posted();

  // Payload for a frame from `psn` on could not be read.
  void on_fetch_failed(Side side, wire::Psn psn);
  // Data of the packet with `psn` could not be written. `announced`: the completion that would have
  // announced it has been turned into an error already.
  void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced);

  bool active = false;  // stands in the endpoint's list of QPs that may send

 private:
  QpContext context_;
  RcRequester requester_;
  RcResponder responder_;
  bool responders_turn_ = true;
};

}  // namespace rocemu::transport
