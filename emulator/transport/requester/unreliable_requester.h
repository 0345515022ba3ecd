// The send queue of the services without acknowledgements, UC and UD: a request is complete when
// its packets have left (IBTA vol 1, 9.8.2.1 and 9.8.3.1).
//
// Requests stay in `requests_` until the burst with their last packet has been sent, since only
// then is it known that their memory could be read. A request that fails takes the send queue to
// SQE: what stands behind it is flushed, receiving goes on (10.3.1). Nothing limits how much is
// sent but the sink.
#pragma once

#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/qp/ring_buffer.h"

namespace rocemu::transport {

class UnreliableQp;

class UnreliableRequester {
 public:
  UnreliableRequester(QpContext& context, UnreliableQp& service)
      : context_(context), service_(service) {}

  void reset();
  void start() { next_psn_ = context_.attributes.send_psn; }
  void note_draining() { drain_noted_ = false; }
  bool drained() const { return requests_.empty(); }
  void add_load(QpLoad& load) const { load.requests = static_cast<uint32_t>(requests_.size()); }

  Turn transmit(Burst& burst);
  void on_burst_sent();
  void on_fetch_failed(wire::Psn psn);

  void flush();         // what has been taken off the queue
  void flush_posted();  // what still stands in it

 private:
  struct Request {
    SendWork work;
    wire::Psn first_psn;
    uint32_t packets = 0;  // 0: faulty or local, never to be sent
    uint32_t sent = 0;
  };

  bool take_next();
  Turn send_packet(Burst& burst, Request& request);
  Turn take_local_turn(const SendWork& work);
  void note_drained();
  void complete_oldest(WcStatus status);
  void fail_oldest(WcStatus status);

  QpContext& context_;
  UnreliableQp& service_;
  RingBuffer<Request> requests_;  // oldest first; the last one may be in the middle
  uint32_t current_ = 0;          // the one to send from
  wire::Psn next_psn_;
  bool drain_noted_ = false;
};

}  // namespace rocemu::transport
