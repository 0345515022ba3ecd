// An unreliable connection QP (IBTA vol 1, 9.8.2): messages of SEND and WRITE packets to one peer,
// without acknowledgements.
//
// A message is received whole or, if one of its packets is missing, not at all: after a gap in the
// PSNs everything is dropped until the next FIRST or ONLY, from which the PSNs count anew. What a
// cut WRITE has written stays written. A packet of the last kRepeatedPsns is a copy that the
// network made or held up; it does not begin a message a second time.
//
// A packet that may not be executed drops its message: see responder/refusals.h.
#pragma once

#include "base/time.h"
#include "emulator/transport/service/unreliable_qp.h"

namespace rocemu::transport {

class UcQp final : public UnreliableQp {
 public:
  static constexpr int32_t kRepeatedPsns = 1 << 16;

  UcQp(const EndpointParts& endpoint, wire::Qpn qpn, const QpResources& resources)
      : UnreliableQp(endpoint, wire::Transport::uc, qpn, resources) {}

  void on_packet(TimeNs now, const wire::Packet& packet) override;
  WcStatus find_fault(const SendWork& work) const override;
  const Path* address(const SendWork& work, wire::Bth& bth,
                      wire::ExtendedHeaders& ext) const override;

 private:
  void start_receiving() override;
  Refusal execute(const wire::Packet& packet);
  Refusal execute_send(const wire::Packet& packet);
  Refusal execute_write(const wire::Packet& packet);
  void announce(const wire::Packet& packet, uint32_t byte_length);

  wire::Psn expected_psn_;
  wire::MessageKind message_ = wire::MessageKind::none;  // under way; none: FIRST or ONLY is next
  uint32_t received_bytes_ = 0;                          // payload of the message under way
  wire::Reth write_;  // where the WRITE under way goes on, and how much is left
  bool established_ = false;
};

}  // namespace rocemu::transport
