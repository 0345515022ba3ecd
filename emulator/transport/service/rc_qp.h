// One QP of a reliable connection, RC or one end of XRC: its state, and the requester and responder
// that make it up. The XRC_SEND end is a requester, the XRC_RECV end a responder that finds its
// receives by the XRCETH of each request (IBTA vol 1, annex A14).
#pragma once

#include "base/time.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/requester/rc_requester.h"
#include "emulator/transport/responder/rc_responder.h"
#include "emulator/transport/responder/refusals.h"

namespace rocemu::transport {

class RcQp final : public Qp {
 public:
  // `transport`: rc or xrc.
  RcQp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
       const QpResources& resources);

  bool draining() const override;
  QpLoad load() const override;
  void on_packet(TimeNs now, const wire::Packet& packet) override;
  bool takes_whole(const wire::Packet& run) const override;
  void on_timeout(TimeNs now, TimeNs answers_by) override;
  // Responder and requester take turns.
  Turn transmit(TimeNs now, Burst& burst) override;
  void on_path_migrated() override { requester_.on_path_migrated(); }
  void acknowledge(Burst& burst) override { responder_.acknowledge(burst); }
  TimeNs deadline() const override;
  void flush_posted() override;
  void on_fetch_failed(Side side, wire::Psn psn) override;
  void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) override;

 private:
  void on_new_state(QpState before) override;
  void on_new_attributes(bool of_another_path) override;
  void add_facts(TimeNs now, WaitFacts& facts) const override;
  void flush() override;
  Refusal dispatch(TimeNs now, const wire::Packet& packet);
  void note_telemetry(std::span<const std::byte> record);

  RcRequester requester_;
  RcResponder responder_;
  bool responders_turn_ = true;
};

}  // namespace rocemu::transport
