// An unreliable datagram QP (IBTA vol 1, 9.8.3): each message is one packet, goes where its work
// request says, and comes from anywhere.
//
// A datagram is received when its P_Key and Q_Key are right, it is addressed to this port or to a
// multicast group that the QP is attached to, and a receive is posted that holds it and the 40
// bytes of its GRH: else it is dropped and counted (responder/refusals.h). The GRH of a RoCE v2
// packet is its IP header (qp/network_header.h).
#pragma once

#include "base/time.h"
#include "emulator/transport/service/unreliable_qp.h"

namespace rocemu::transport {

class UdQp final : public UnreliableQp {
 public:
  UdQp(const EndpointParts& endpoint, wire::Qpn qpn, const QpResources& resources)
      : UnreliableQp(endpoint, wire::Transport::ud, qpn, resources) {}

  void on_packet(TimeNs now, const wire::Packet& packet) override;
  WcStatus find_fault(const SendWork& work) const override;
  const Path* address(const SendWork& work, wire::Bth& bth,
                      wire::ExtendedHeaders& ext) const override;

 private:
  void start_receiving() override {}
  Refusal check(const wire::Packet& packet) const;
  Refusal execute(const wire::Packet& packet);
};

}  // namespace rocemu::transport
