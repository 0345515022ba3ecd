// The send queue of the services without acknowledgements, UC and UD: a request is complete when
// its packets have left (IBTA vol 1, 9.8.2.1 and 9.8.3.1).
//
// A request of a raw packet QP is a whole frame, which goes out as it is, or a TCP message with its
// headers, of which frames are made.
//
// Requests stay in the send window until the burst with their last packet has been sent, since only
// then is it known that their memory could be read. A request that fails takes the send queue to
// SQE: what stands behind it is flushed, receiving goes on (10.3.1). Nothing limits how much is
// sent but the sink.
#pragma once

#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/requester/send_window.h"

namespace rocemu::transport {

// The service whose send queue it is: UC and UD differ in what they may send, and where to.
class UnreliableService {
 public:
  // Returns the fault of a request of this service, or success.
  virtual WcStatus find_fault(const SendWork& work) const = 0;
  // Returns the path of a request's packets, and fills in what the service adds to the headers.
  // Null when the way is gone. The path is valid until the next call into the transport.
  virtual const Path* address(const SendWork& work, wire::Bth& bth,
                              wire::ExtendedHeaders& ext) const = 0;

 protected:
  ~UnreliableService() = default;
};

class UnreliableRequester {
 public:
  enum class Sends : uint8_t { messages, whole_frames };
  UnreliableRequester(QpContext& context, const UnreliableService& service, Sends sends)
      : context_(context), service_(service), sends_(sends), window_(context) {}

  void reset() {
    window_.reset();
    behind_error_ = 0;
  }
  void start() { window_.start(); }
  // From SQE to RTS: what is posted by now stands behind the error, and is not sent (10.3.1).
  void go_on() { behind_error_ = context_.resources.send_queue->waiting(); }
  void note_draining() { window_.note_draining(); }
  bool drained() const { return window_.empty() && behind_error_ == 0; }
  void add_load(QpLoad& load) const { load.requests = window_.size(); }

  void add_facts(WaitFacts& facts) const { window_.add_facts(facts); }

  Turn transmit(TimeNs now, Burst& burst);
  void on_burst_sent();
  void on_fetch_failed(wire::Psn psn) { window_.note_unreadable(psn); }

  void flush() { window_.flush(); }                // flushes the requests taken off the send queue
  void flush_posted() { window_.flush_posted(); }  // flushes those that still stand in it

 private:
  using Request = SendWindow::Request;

  WcStatus find_fault(const SendWork& work) const;
  Turn send_packet(Burst& burst, Request& request);
  Turn send_whole(Burst& burst, const Request& request);
  Turn send_segment(Burst& burst, const Request& request);
  Turn take_local_turn(const SendWork& work);
  void fail_oldest(WcStatus status);

  QpContext& context_;
  const UnreliableService& service_;
  const Sends sends_;
  SendWindow window_;
  uint32_t behind_error_ = 0;  // of the requests in the send queue, the oldest, to be flushed yet
};

}  // namespace rocemu::transport
