// What all queue pairs have in common, whatever their service: number, state, resources, and the
// endpoint's way to reach them.
#pragma once

#include "base/time.h"
#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class Qp {
 public:
  virtual ~Qp() = default;
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  wire::Qpn qpn() const { return context_.qpn; }
  QpState state() const { return context_.state; }
  virtual bool draining() const = 0;
  virtual QpLoad load() const = 0;

  virtual void modify(QpState state, const QpAttributes& attributes) = 0;
  virtual void on_packet(TimeNs now, const wire::Packet& packet) = 0;
  virtual void on_timeout(TimeNs now) = 0;

  // Adds one frame to the burst.
  virtual Turn transmit(TimeNs now, Burst& burst) = 0;
  // Adds the ACKs and NAKs that are next to be sent.
  virtual void acknowledge(Burst&) {}
  // The burst has left, for a QP that asked to be told (Burst::tell_when_sent).
  virtual void on_burst_sent() {}
  virtual TimeNs deadline() const = 0;

  // To ERROR: everything outstanding completes with a flush error. A QP with a shared receive queue
  // leaves it as it is, and says when it has taken its last receive (IBTA vol 1, 10.2.9.3).
  void enter_error();
  // Completes with a flush error what stands in the queues that do not work any more.
  // Precondition: state ERROR, or SQE for the send queue alone.
  virtual void flush_posted() = 0;

  // Payload for a frame from `psn` on could not be read.
  virtual void on_fetch_failed(Side side, wire::Psn psn) = 0;
  // Data of the packet with `psn` could not be written. `announced`: the completion that would have
  // announced it has been turned into an error already.
  virtual void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) = 0;

  bool active = false;     // stands in the endpoint's list of QPs that may send
  bool answering = false;  // stands in its list of QPs that may have to acknowledge

 protected:
  Qp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
     const QpResources& resources);

  // What has been taken off the queues completes with a flush error. State ERROR.
  virtual void flush() = 0;

  // States in which packets are received, and the check of the P_Key (IBTA vol 1, 10.9.3): the keys
  // are the same, and one end at least is a full member.
  bool receives() const {
    return context_.state >= QpState::ready_to_receive &&
           context_.state <= QpState::send_queue_error;
  }
  bool pkey_matches(const wire::Packet& packet) const {
    const uint16_t own = context_.attributes.pkey;
    return ((packet.bth.pkey ^ own) & 0x7fff) == 0 && ((packet.bth.pkey | own) & 0x8000) != 0;
  }

  QpContext context_;
};

}  // namespace rocemu::transport
