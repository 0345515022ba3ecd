// A raw packet QP: each send is a whole Ethernet frame, or a TCP message that leaves as many
// (wire/tcp_segment.h), and what it receives are those frames that its flows match
// (interface/flow.h). No header is added, no ICRC is made.
//
// A frame that would pass for one of RoCE is not sent, but counted as a message dropped: with it a
// program could speak in the name of other programs' QPs.
#pragma once

#include <span>

#include "base/time.h"
#include "emulator/transport/interface/flow.h"
#include "emulator/transport/service/unreliable_qp.h"

namespace rocemu::transport {

class RawQp final : public UnreliableQp {
 public:
  RawQp(const EndpointParts& endpoint, wire::Qpn qpn, const QpResources& resources)
      : UnreliableQp(endpoint, wire::Transport::ud, qpn, resources, Sends::whole_frames) {}

  // A frame that `flow` has for it. `number` tells frames apart: a QP gets each once, by however
  // many flows.
  void on_frame(std::span<const std::byte> frame, uint64_t number, const Flow& flow);

  void on_packet(TimeNs now, const wire::Packet& packet) override;
  WcStatus find_fault(const SendWork& work) const override;
  const Path* address(const SendWork&, wire::Bth&, wire::ExtendedHeaders&) const override {
    return nullptr;
  }

 private:
  static WcStatus find_fault_of_tso(const SendWork& work);
  void start_receiving() override {}
  Refusal execute(std::span<const std::byte> frame, const Flow& flow);

  uint64_t last_frame_ = 0;
};

}  // namespace rocemu::transport
