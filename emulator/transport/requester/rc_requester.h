// The requester of a reliable connection: takes send requests off the queue, cuts them into
// packets, and keeps them until they are answered (IBTA vol 1, 9.7.5.1 and 9.7.7).
//
// Every packet of a request has a PSN; a READ owns as many as its response will have. From `una_`
// (the oldest PSN not yet acknowledged) to `sent_end_` (after the newest ever sent) packets are in
// flight, at most limits.window_packets of them before a new one waits; one READ may reach beyond.
// An ACK is asked for at the end of every message, every limits.ack_interval_packets, and when the
// window is full.
//
// Retransmission is go-back-N: the send cursor (`send_index_`, `send_packet_`) is set back to
// `una_` and runs forward again. Three things set it back: a NAK for a sequence error (at once), an
// answer that shows that a READ response or atomic ACK before it was lost (implied NAK, once until
// there is progress), and the ACK timer. Each costs one of retry_count; progress gives them back.
// An RNR NAK holds the cursor for the responder's time and costs one of rnr_retry.
//
// A fourth one costs nothing and is none of the specification's: an answer that is long overdue by
// the round-trip times measured so far (rc_probe.cc). A lost NAK or last packet would otherwise
// wait for the ACK timer, thousands of round trips. When a request fails is still up to the ACK
// timer and retry_count alone; with timeout 0 nothing is sent again for want of an answer.
//
// A request fails only when it is the oldest: an error of its own (its memory, its opcode) waits
// until all before it have been answered, so that completions stay in order and mean what they say.
//
// rc_requester.cc sends, rc_completer.cc handles the answers, rc_probe.cc their lateness.
#pragma once

#include "base/time.h"
#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/transport/requester/adaptive_window.h"
#include "emulator/transport/requester/rtt_estimator.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class RcRequester {
 public:
  explicit RcRequester(QpContext& context) : context_(context) {}

  void reset();
  void start();  // to RTS: the first PSN is attributes.send_psn
  void note_draining() { drain_noted_ = false; }
  // In RTS or SQD, which may change what requests under way go by.
  void on_attributes_changed();
  bool drained() const { return requests_.empty(); }
  void add_load(QpLoad& load) const {
    load.requests = static_cast<uint32_t>(requests_.size());
    load.unacknowledged_psns = static_cast<uint32_t>(sent_end_.distance_from(una_));
    load.rd_atomics = rd_atomics_;
  }

  Turn transmit(TimeNs now, Burst& burst);
  void on_response(TimeNs now, const wire::Packet& packet);
  void on_timeout(TimeNs now);
  TimeNs deadline() const;

  void flush();         // what has been taken off the queue
  void flush_posted();  // what still stands in it
  void on_fetch_failed(wire::Psn psn);
  void on_scatter_failed(bool announced);

 private:
  struct Request {
    SendWork work;
    wire::Psn first_psn;
    uint32_t packets = 0;    // PSNs it owns
    uint32_t responses = 0;  // READ and atomics: response packets that have come, in order
    bool started = false;    // counted in rd_atomics_
    wire::Psn end_psn() const { return first_psn + packets; }
  };

  // rc_requester.cc
  bool take_next();
  WcStatus find_fault(const SendWork& work) const;
  bool may_start(const Request& request) const;
  Turn transmit_next(TimeNs now, Burst& burst);
  Turn take_local_turn(const SendWork& work);
  Turn send_packet(TimeNs now, Burst& burst, Request& request);
  wire::Bth make_bth(wire::Operation operation, wire::Psn psn, bool ack_request,
                     bool solicited) const;
  void note_drained();

  // rc_completer.cc
  void on_acknowledge(TimeNs now, const wire::Packet& packet);
  void on_read_response(TimeNs now, const wire::Packet& packet);
  void on_atomic_acknowledge(TimeNs now, const wire::Packet& packet);
  void on_rnr_nak(TimeNs now, wire::Psn psn, uint8_t timer_code);
  void on_sequence_nak(TimeNs now, wire::Psn psn);
  void on_fatal_nak(TimeNs now, wire::Psn psn, uint8_t syndrome);
  bool acknowledge_before(TimeNs now, wire::Psn end);
  bool accept_response_psn(TimeNs now, const wire::Packet& packet, bool atomic);
  bool scatter_response(Request& request, std::span<const std::byte> payload, uint32_t offset_bytes,
                        wire::Psn psn);
  void response_done(TimeNs now, Request& request);
  void progress(TimeNs now, wire::Psn before);
  void implied_nak();
  void retry();
  void seek(wire::Psn psn);
  void complete_oldest(WcStatus status);
  void fail_oldest(WcStatus status);

  // rc_probe.cc
  void note_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool answered);
  void note_progress(TimeNs now, wire::Psn before);
  void probe(TimeNs now);
  void send_probe();
  void stop_probing();
  uint32_t window() const;

  bool in_flight(wire::Psn psn) const { return !psn.before(una_) && psn.before(sent_end_); }

  QpContext& context_;
  RingBuffer<Request> requests_;  // taken and not completed, oldest first
  uint32_t send_index_ = 0;       // the cursor: index in requests_ …
  uint32_t send_packet_ = 0;      // … and packet in that request
  wire::Psn next_psn_;            // for the next request
  wire::Psn una_;
  wire::Psn sent_end_;
  wire::Psn ack_asked_;  // the PSN after the newest packet with AckReq
  uint32_t rd_atomics_ = 0;
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool implied_nak_taken_ = false;
  bool drain_noted_ = false;
  TimeNs ack_deadline_ = kNever;
  TimeNs rnr_until_ = kNever;  // kNever: not waiting

  AdaptiveWindow window_;
  RttEstimator rtt_;
  TimeNs timed_since_ = kNever;  // a packet's round trip is being measured; kNever: none's
  wire::Psn timed_end_;          // the PSN after it
  TimeNs probe_deadline_ = kNever;
  bool probe_put_off_ = false;
  uint32_t probe_window_ = 0;  // while what a probe began goes on; 0: none
  wire::Psn probed_end_;       // the PSN after the newest sent again since
  bool probed_for_data_ = false;
};

}  // namespace rocemu::transport
