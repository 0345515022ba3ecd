// UnreliableQp is what the services without acknowledgements, UC and UD, share. Errors of the send
// queue lead to SQE, errors of the receive queue to ERROR; a message that cannot be received is
// dropped in silence and counted (IBTA vol 1, 9.8.2.2, 9.8.3.2, 10.3.1).
#pragma once

#include "base/time.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/requester/unreliable_requester.h"
#include "emulator/transport/responder/refusals.h"

namespace rocemu::transport {

class UnreliableQp : public Qp, public UnreliableService {
 public:
  using Sends = UnreliableRequester::Sends;
  bool draining() const final {
    return context_.state == QpState::send_queue_drain && !requester_.drained();
  }
  QpLoad load() const final;
  void on_timeout(TimeNs, TimeNs) final {}
  Turn transmit(TimeNs now, Burst& burst) final;
  void on_burst_sent() final { requester_.on_burst_sent(); }
  TimeNs deadline() const final { return kNever; }
  void flush_posted() final;
  void on_fetch_failed(Side side, wire::Psn psn) final;
  void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) final;

 protected:
  UnreliableQp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
               const QpResources& resources, Sends sends = Sends::messages);

  // The receiving side begins anew, in state RTR or RESET.
  virtual void start_receiving() = 0;

  // Makes sure that a good receive is at hand.
  Refusal take_receive();
  const ReceiveWork& receive() const { return receive_; }
  // Announces the receive at hand, when the program can see its data.
  void complete_receive(Completion completion);
  // Ends the message under way. The QP keeps its receive for the next one, but one that others
  // could have had is given back to its owner with an error (class E of IBTA vol 1, 9.9.3, with
  // rxe's status).
  void give_up_receive();
  // Does with the packet with `psn` what the table of refusals says: the packet or its message is
  // dropped, or the QP goes to ERROR.
  void refuse(Refusal refusal, wire::Psn psn);

 private:
  void tell_taken() const;
  void fail(const RefusalRule& rule);
  void end_receive(WcStatus status);  // without data
  void on_new_state(QpState before) final;
  void add_facts(TimeNs now, WaitFacts& facts) const final;
  void flush() final;

  UnreliableRequester requester_;
  bool receive_taken_ = false;  // kept for the next message when one is dropped
  ReceiveWork receive_;
};

}  // namespace rocemu::transport
