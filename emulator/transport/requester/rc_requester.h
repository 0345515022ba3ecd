// The requester of a reliable connection: takes send requests off the queue, cuts them into
// packets, and keeps them until they are answered (IBTA vol 1, 9.7.5.1 and 9.7.7).
//
// Every packet of a request has a PSN; a READ owns as many as its response will have, and one READ
// may reach beyond the window. The parts, each with its rules in its header:
//
//   SendWindow        the requests under way, and the cursor that says what is sent next
//   GoBackN           what is in flight, and when and from where it is sent again
//   SelectiveRepeat   the same with a peer that has it, if the device does
//   ProbeTimer        an answer that is long overdue by the round trips measured so far
//   RoundTripMeter    measures them
//   AdaptiveWindow    the congestion control: how much may be in flight, and how fast it leaves
//   SendPace          holds packets back for that
//   ControlledFlow    stands in for both where the device has chosen another algorithm
//
// This class joins them: rc_requester.cc sends, rc_completer.cc handles answers and timeouts, and
// rc_selective.cc those of selective repeat.
#pragma once

#include <memory>
#include <optional>

#include "base/time.h"
#include "emulator/congestion/adaptive_window.h"
#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/send_pace.h"
#include "emulator/transport/requester/go_back_n.h"
#include "emulator/transport/requester/probe_timer.h"
#include "emulator/transport/requester/round_trip_meter.h"
#include "emulator/transport/requester/selective_repeat.h"
#include "emulator/transport/requester/send_window.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class RcRequester {
 public:
  explicit RcRequester(QpContext& context)
      : context_(context),
        window_(context),
        recovery_(context, window_),
        congestion_(context.limits.window_packets, context.qpn.value) {}

  // The states of the QP.
  void reset();
  void start();                                      // to RTS; the first PSN is attributes.send_psn
  void note_draining() { window_.note_draining(); }  // to SQD
  // The program has changed attributes that requests under way go by, in RTS or SQD.
  void on_attributes_changed(bool of_another_path);
  void on_path_migrated();
  bool drained() const { return window_.empty(); }
  void add_load(QpLoad& load) const {
    load.requests = window_.size();
    load.unacknowledged_psns = recovery_.in_flight();
    load.rd_atomics = window_.owed_rd_atomics();
    load.recovery = repeats_selectively() ? Recovery::selective_repeat : Recovery::go_back_n;
  }

  void add_facts(TimeNs now, WaitFacts& facts) const;

  Turn transmit(TimeNs now, Burst& burst);
  // Says whether a run of READ responses can be handed over as a whole.
  bool takes_whole(const wire::Packet& run) const { return !run.bth.psn.before(recovery_.una()); }
  void on_response(TimeNs now, const wire::Packet& packet);
  void on_timeout(TimeNs now, TimeNs answers_by);
  TimeNs deadline() const {
    const TimeNs next = std::min({recovery_.deadline(), probe_.deadline(), pace_.deadline()});
    return selective_ ? std::min(next, selective_->deadline()) : next;
  }
  bool repeats_selectively() const { return selective_ && selective_->active(); }

  void flush();                                    // flushes the requests taken off the send queue
  void flush_posted() { window_.flush_posted(); }  // flushes those that still stand in it
  void on_fetch_failed(wire::Psn psn);
  void on_scatter_failed(bool announced);
  void on_response_lost(wire::Psn psn);

 private:
  using Request = SendWindow::Request;

  // rc_requester.cc
  void join_path();
  void change_path();
  WcStatus find_fault(const SendWork& work) const;
  bool has_room_for(wire::Psn psn) const;
  bool waits_for_fence(const Request& request) const {
    return request.work.fence && window_.rd_atomics() > 0;
  }
  bool may_start(const Request& request) const;
  Turn transmit_next(TimeNs now, Burst& burst);
  Turn take_local_turn(const SendWork& work);
  Turn send_packet(TimeNs now, Burst& burst, const Request& request);
  Turn send_packets(TimeNs now, Burst& burst, const Request& request, uint32_t packets);
  uint32_t run_packets(const Burst& burst, const Request& request) const;
  void offer_landing(Burst& burst, const Request& request) const;
  void note_sent(TimeNs now, wire::Psn psn, uint32_t packets, bool answered, uint32_t bytes);
  void note_again(wire::Psn psn, uint32_t packets);

  // rc_completer.cc
  void on_acknowledge(TimeNs now, const wire::Packet& packet);
  void on_read_response(TimeNs now, const wire::Packet& packet);
  void on_atomic_acknowledge(TimeNs now, const wire::Packet& packet);
  void on_rnr_nak(TimeNs now, wire::Psn psn, uint8_t timer_code);
  void on_sequence_nak(TimeNs now, wire::Psn psn);
  void on_fatal_nak(TimeNs now, wire::Psn psn, uint8_t syndrome);
  bool acknowledge_before(TimeNs now, wire::Psn end);
  bool accept_response_psn(TimeNs now, const wire::Packet& packet, bool atomic);
  bool take_data(const Request& request, std::span<const std::byte> data, uint32_t offset_bytes,
                 wire::Psn psn, ScatterKind kind = ScatterKind::read_response);
  void responses_done(TimeNs now, Request& request, uint32_t packets);
  void progress(TimeNs now, wire::Psn before);
  void on_implied_nak(TimeNs now);
  void note_loss(TimeNs now);
  void send_again();
  void send_probe();
  void fail_oldest(WcStatus status);

  // rc_selective.cc
  bool take_selectively(TimeNs now, const wire::Packet& packet);
  void on_report(TimeNs now, const wire::Packet& packet);
  void on_selective_rnr(TimeNs now, wire::Psn psn, uint8_t timer_code);
  void on_selective_answer(TimeNs now, const wire::Packet& packet);
  void finish_answer(TimeNs now, wire::Psn before);
  void restart_selective_timer(TimeNs now);
  void complete_delivered();
  void note_answer(Request& request);
  void fail_when_due();
  void on_selective_timeout(TimeNs now, bool waited);
  void give_up_in_flight();
  uint32_t shape_selectively(const Request& request, uint32_t index, wire::Bth& bth,
                             wire::ExtendedHeaders& ext, uint32_t& psns);
  std::byte* finish_selectively(Burst& burst, const Request& request, const wire::Bth& bth,
                                const wire::ExtendedHeaders& ext, std::byte* payload);
  void steer();
  Request* find_request(wire::Psn psn);

  // The number of packets that may be in flight by congestion control. An algorithm that the device
  // has chosen hears of losses instead of the adaptive window, which so stays whole.
  uint32_t congestion_window() const {
    const ControlledFlow* const flow = context_.flow.get();
    if (flow == nullptr) [[likely]]
      return congestion_.packets();
    return flow->packets_allowed(congestion_.packets());
  }
  // The number of packets that may be in flight now.
  uint32_t packets_allowed() const { return probe_.window(congestion_window()); }
  // An ACK is asked for so often that a window of so many packets moves on.
  uint32_t packets_to_acknowledge() const {
    if (context_.paced) return 1;
    const ControlledFlow* const flow = context_.flow.get();
    if (flow == nullptr) [[likely]]
      return packets_allowed();
    return flow->packets_to_acknowledge(packets_allowed());
  }

  // The time that the next packet is held back: not so long that the ACK timeout ends meanwhile.
  TimeNs packet_interval_ns() {
    const TimeNs interval_ns = congestion_.interval_ns();
    if (interval_ns == 0 || context_.attributes.timeout == 0) [[likely]]
      return interval_ns;
    return std::min(interval_ns, ack_timeout_ns(context_.attributes.timeout) / 4);
  }

  QpContext& context_;
  SendWindow window_;
  GoBackN recovery_;
  congestion::AdaptiveWindow congestion_;
  RoundTripMeter round_trip_;
  ProbeTimer probe_;
  SendPace pace_;
  std::unique_ptr<SelectiveRepeat> selective_;  // null: the device does not have it
  // With selective repeat: the PSN at which the connection ends, and the status of its request.
  // Answers to earlier PSNs may be to come.
  struct End {
    wire::Psn psn;
    WcStatus status{};
  };
  std::optional<End> end_;
};

}  // namespace rocemu::transport
