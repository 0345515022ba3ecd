// Frames under construction. A transmit call builds headers and collects payload fetches for many
// frames, moves all payloads at once, computes the ICRCs and sends. Payloads go straight into the
// buffer that leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/qp/deferred_completions.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/tcp_segment.h"

namespace rocemu::transport {

class Burst {
 public:
  explicit Burst(Memory& memory) : memory_(memory) {}

  // Opens a burst of at most `max_packets` packets to `sink`, of which those of one message may
  // leave as runs if `may_run` says so as well as the sink.
  void begin(FrameSink& sink, unsigned max_packets, bool may_run) {
    sink_ = &sink;
    room_ = max_packets;
    weight_ = 0;
    small_messages_ = 0;
    owes_icrc_ = sink.may_owe_icrc();
    takes_runs_ = may_run && sink.takes_runs();
    lends_ = takes_runs_ && owes_icrc_ && sink.takes_lent();
    landing_epoch_ = lends_ ? sink.landing_epoch() : 0;
    packets_ = 0;
    failed_qps_.clear();
  }
  bool full() const { return packets_ >= room_; }
  // The cost in bytes of the packets added so far: each costs kFrameWeight besides its payload.
  static constexpr uint32_t kFrameWeight = 2048;
  uint32_t weight() const { return weight_; }
  // Of the packets added so far, those that are a whole message of at most kSmallBytes, not of
  // none.
  static constexpr uint32_t kSmallBytes = 1024;
  uint32_t small_messages() const { return small_messages_; }

  // Starts a frame of `qp`: writes the headers and the pad bytes, returns where its payload
  // belongs. Null when the sink has no buffer. `bth.pad_bytes` is set here. `telemetry_bytes` are
  // left behind the ICRC, for added_telemetry().
  std::byte* add(Qp& qp, Side side, const Path& path, wire::Bth bth,
                 const wire::ExtendedHeaders& ext, uint32_t payload_bytes,
                 uint32_t telemetry_bytes = 0);
  // The most packets with so much payload that a run may have now; below two there can be none.
  uint32_t run_packets(uint32_t segment_bytes) const {
    if (!takes_runs_) return 0;
    return std::min({room_ - packets_, wire::kMaxRunPackets,
                     static_cast<uint32_t>(wire::kMaxRunBytes / segment_bytes)});
  }
  // Starts a run of so many packets (wire/run.h); as add(). Precondition: run_packets() allows it.
  std::byte* add_run(Qp& qp, Side side, const Path& path, wire::Bth bth,
                     const wire::ExtendedHeaders& ext, uint32_t payload_bytes, uint32_t packets,
                     uint32_t segment_bytes);
  // True when runs may lend their payload, and landings can be used.
  bool lends() const { return lends_; }
  // Gives the frame that was added last a UDP source port of its own, so that a network with
  // several paths spreads the frames.
  void spread_added(const Path& path);
  // The length of the frame that was added last, all of it.
  uint32_t added_bytes() const { return frames_.back().length_bytes; }
  // Sets the ECN field of the frame that was added last to ECT(0) when it carries data, unless the
  // program has set the field.
  void mark_ecn_capable();
  std::byte* added_telemetry() const {
    const Frame& frame = frames_.back();
    return frame.buffer.data + frame.length_bytes - frame.telemetry_bytes;
  }
  // Starts a frame of which all comes from the program; as add().
  std::byte* add_whole(Qp& qp, wire::Psn psn, uint32_t frame_bytes);
  // Starts a frame that is one of a TCP message's segments, the headers of which the program has
  // given; as add(), but the whole frame is to be filled in. finish() makes the headers its own.
  std::byte* add_segment(Qp& qp, wire::Psn psn, uint32_t frame_bytes,
                         const wire::TcpSegment& segment);
  // Has the payload of the frame that was added last, all of it, fetched from `range` to where it
  // belongs, or lent by `range`.
  void fetch(const MemoryRange& range, std::byte* to, uint32_t length_bytes);
  // The same of a READ's answer, of which `landing` is for its data from this frame on: where that
  // holds they are copied there at once, and lent from there.
  void fetch_read(const MemoryRange& range, const Landing& landing, std::byte* to,
                  uint32_t length_bytes);
  // Sends a landing with the READ request that was added last, where it can be used.
  void offer_landing(const MemoryRange& range);
  // The tag of fetches for the frame that was added last.
  uint32_t fetch_tag() const { return static_cast<uint32_t>(frames_.size() - 1); }

  // The frame that was added last cannot be completed: as if its payload could not be had.
  void discard_added() { discard_from(static_cast<uint32_t>(frames_.size() - 1)); }

  // `qp` hears of it when the frames have left (Qp::on_burst_sent).
  void tell_when_sent(Qp& qp) {
    if (waiting_qps_.empty() || waiting_qps_.back() != &qp) waiting_qps_.push_back(&qp);
  }

  // Moves payloads, seals and sends; frames whose payload could not be had, and what the same side
  // of the QP built after them, are discarded and the QP fails. Returns how many packets were sent.
  unsigned finish();
  // The QPs that the last finish() or discard_added() calls have failed: they may have a NAK to
  // send.
  std::span<Qp* const> failed_qps() const { return failed_qps_; }

 private:
  struct Frame {
    FrameBuffer buffer;
    Qp* qp;
    uint32_t length_bytes;
    wire::Psn psn;
    uint16_t l3_offset_bytes;  // 0: a whole frame of the program's
    uint16_t payload_bytes;    // of all packets of a run
    uint8_t telemetry_bytes;
    Side side;
    bool discarded;
    int32_t segment = -1;  // the index in segments_; -1: none
  };
  std::byte* start(const FrameBuffer& buffer, Qp& qp, Side side, const Path& path, wire::Bth bth,
                   const wire::ExtendedHeaders& ext, uint32_t payload_bytes,
                   uint32_t telemetry_bytes);
  void discard_from(uint32_t index);
  bool seal(Frame& frame);

  Memory& memory_;
  FrameSink* sink_ = nullptr;
  unsigned room_ = 0;
  uint32_t weight_ = 0;
  uint32_t small_messages_ = 0;
  uint32_t packets_ = 0;  // added so far
  bool owes_icrc_ = false;
  bool takes_runs_ = false;
  bool lends_ = false;
  uint64_t landing_epoch_ = 0;
  uint32_t spread_ = 0;  // frames so far
  std::vector<Frame> frames_;
  std::vector<wire::TcpSegment> segments_;
  std::vector<uint32_t> failed_;
  std::vector<Qp*> failed_qps_;
  std::vector<Qp*> waiting_qps_;
};

}  // namespace rocemu::transport
