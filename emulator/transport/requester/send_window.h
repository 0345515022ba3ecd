// The send window of a QP: the requests that have been taken off its send queue and are not
// completed, oldest first. RC, XRC, UC and UD share it; they differ in when a request is complete,
// and in what sets the cursor back.
//
// 1. A request is taken in state RTS alone. In SQD those that were taken go on, and when the last
//    one is complete the program hears of it, once and if it asked to (IBTA vol 1, 10.3.1).
// 2. With it come its PSNs: one for each packet, or for each packet of a READ's response (9.7.2).
//    A faulty or a local request is never sent and owns none.
// 3. The cursor points to the packet that is to be sent next. It runs forward over the requests;
//    to send again is to set it back.
// 4. Only the oldest request completes or fails: an error of a later one (its memory, its opcode)
//    waits until all before it are over, so that completions stay in order and mean what they say.
// 5. READs and atomics count from their first packet to their completion: against max_rd_atomic,
//    and a fence waits for them. A READ that has all its data and waits for an older request to
//    complete, as there may be with selective repeat, no longer counts against max_rd_atomic: the
//    peer has nothing to keep for it. An atomic does, since the peer keeps its result.
#pragma once

#include "base/time.h"
#include "emulator/transport/interface/wait.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/qp/ring_buffer.h"

namespace rocemu::transport {

class SendWindow {
 public:
  struct Request {
    SendWork work;
    wire::Psn first_psn;
    uint32_t packets = 0;    // PSNs it owns
    uint32_t responses = 0;  // READ and atomics: response packets that have come, in order
    bool started = false;    // its first packet has been sent (RC and XRC)
    TimeNs taken_ns = 0;     // when it was taken off the send queue (RC and XRC)
    uint32_t receive = 0;    // the number of the receive that it takes there
    bool answered = false;   // a READ whose data has come, and that waits for older requests

    wire::Psn end_psn() const { return first_psn + packets; }
    bool sends_packets() const { return work.fault == WcStatus::success && !is_local(work.opcode); }
  };

  explicit SendWindow(QpContext& context) : context_(context) {}

  void reset();  // forgets the requests and gives their storage back
  void start() { next_psn_ = context_.attributes.send_psn; }

  bool empty() const { return requests_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(requests_.size()); }
  Request& oldest() { return requests_.front(); }
  const Request& oldest() const { return requests_.front(); }
  Request& operator[](uint32_t index) { return requests_[index]; }
  // READs and atomics that have started and are not complete, and those of them that the peer may
  // still have to answer.
  uint32_t rd_atomics() const { return rd_atomics_; }
  uint32_t owed_rd_atomics() const { return rd_atomics_ - answered_reads_; }

  // Takes the next request off the send queue. False: there is none, or the state forbids it.
  // `find_fault` says what is wrong with a well-formed request before any packet is sent.
  template <class FindFault>
  bool take_next(TimeNs now, FindFault find_fault) {
    Request* const request = pop();
    if (request == nullptr) return false;
    request->taken_ns = now;
    if (request->work.fault == WcStatus::success) request->work.fault = find_fault(request->work);
    number(*request);
    return true;
  }

  // The cursor. Precondition of current(): not at_end().
  bool at_end() const { return index_ == requests_.size(); }
  bool at_oldest() const { return index_ == 0; }
  Request& current() { return requests_[index_]; }
  const Request& current() const { return requests_[index_]; }
  uint32_t current_packet() const { return packet_; }

  // The first packet of the current request is sent: rule 5.
  void start_current() {
    Request& request = current();
    if (request.started) return;
    request.started = true;
    if (is_read_or_atomic(request.work.opcode)) ++rd_atomics_;
  }
  // All data of a READ has come: rule 5.
  void note_answered(Request& request) {
    request.answered = true;
    ++answered_reads_;
  }
  // So many PSNs of the current request have been sent.
  void advance(uint32_t packets) {
    packet_ += packets;
    if (packet_ < current().packets) return;
    packet_ = 0;
    ++index_;
  }
  // Sets the cursor to the packet with `psn`, or to an older request before it that is never sent.
  void seek(wire::Psn psn);
  // The oldest request has been answered up to `psn`: the cursor does not stay behind.
  void skip_to(wire::Psn psn);

  // The payload from `psn` on could not be read: the request that owns it is faulty, and the cursor
  // does not go beyond it. True when it is the oldest.
  bool note_unreadable(wire::Psn psn);

  // For those who look at the NIC: requests, and what stands next.
  void add_facts(WaitFacts& facts) const;

  // Precondition: not empty().
  void complete_oldest(WcStatus status);
  void flush();                          // completes the requests in the window with a flush error,
  void flush_posted();                   // and those in the send queue, see Qp::flush_posted();
  uint32_t flush_posted(uint32_t most);  // so many of those, and returns how many there were

  void note_draining() { drain_noted_ = false; }  // to state SQD
  void note_drained();                            // nothing can be taken: rule 1

 private:
  void tell_taken(const SendWork& work) const;
  Request* pop();
  void number(Request& request);

  QpContext& context_;
  RingBuffer<Request> requests_;
  uint32_t index_ = 0;   // the cursor: index in requests_ …
  uint32_t packet_ = 0;  // … and packet in that request
  wire::Psn next_psn_;   // for the next request
  uint32_t rd_atomics_ = 0;
  uint32_t answered_reads_ = 0;  // of those: rule 5
  bool drain_noted_ = false;
};

}  // namespace rocemu::transport
