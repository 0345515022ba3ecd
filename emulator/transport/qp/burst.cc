#include "emulator/transport/qp/burst.h"

#include <cstring>

#include "base/byte_order.h"
#include "base/net/headers.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/wire/frame_fields.h"
#include "emulator/wire/icrc.h"

namespace rocemu::transport {

std::byte* Burst::add(Qp& qp, Side side, const Path& path, wire::Bth bth,
                      const wire::ExtendedHeaders& ext, uint32_t payload_bytes,
                      uint32_t telemetry_bytes) {
  FrameBuffer buffer;
  if (!sink_->allocate(buffer)) return nullptr;
  ++packets_;
  weight_ += kFrameWeight + payload_bytes;
  const wire::OpcodeTraits& traits = wire::traits_of(bth.opcode);
  small_messages_ +=
      traits.starts && traits.ends && payload_bytes != 0 && payload_bytes <= kSmallBytes;
  return start(buffer, qp, side, path, bth, ext, payload_bytes, telemetry_bytes);
}

std::byte* Burst::add_run(Qp& qp, Side side, const Path& path, wire::Bth bth,
                          const wire::ExtendedHeaders& ext, uint32_t payload_bytes,
                          uint32_t packets, uint32_t segment_bytes) {
  FrameBuffer buffer;
  if (!sink_->allocate_run(buffer)) return nullptr;
  packets_ += packets;
  weight_ += packets * kFrameWeight + payload_bytes;
  std::byte* const payload = start(buffer, qp, side, path, bth, ext, payload_bytes, 0);
  Frame& frame = frames_.back();
  frame.buffer.run = {packets, segment_bytes,
                      frame.length_bytes + static_cast<uint32_t>(wire::extra_header_bytes(
                                               bth.opcode, packets, path.headers.size_bytes()))};
  return payload;
}

inline std::byte* Burst::start(const FrameBuffer& buffer, Qp& qp, Side side, const Path& path,
                               wire::Bth bth, const wire::ExtendedHeaders& ext,
                               uint32_t payload_bytes, uint32_t telemetry_bytes) {
  bth.pad_bytes = static_cast<uint8_t>(-payload_bytes & 3);
  const size_t after_udp =
      wire::transport_header_bytes(bth.opcode) + payload_bytes + bth.pad_bytes + wire::kIcrcBytes;
  path.headers.write(buffer.data, after_udp, telemetry_bytes);
  std::byte* at = buffer.data + path.headers.size_bytes();
  at += wire::write_transport_headers(at, bth, ext);
  std::memset(at + payload_bytes, 0, bth.pad_bytes);
  frames_.push_back(
      {buffer, &qp, static_cast<uint32_t>(path.headers.size_bytes() + after_udp + telemetry_bytes),
       bth.psn, static_cast<uint16_t>(path.headers.l3_offset_bytes()),
       static_cast<uint16_t>(payload_bytes), static_cast<uint8_t>(telemetry_bytes), side, false});
  return at;
}

void Burst::fetch(const MemoryRange& range, std::byte* to, uint32_t length_bytes) {
  FrameBuffer& buffer = frames_.back().buffer;
  if (lends_ && buffer.run.packets > 1 && memory_.can_lend(range, length_bytes)) {
    buffer.lent = {range.mapped, length_bytes, static_cast<uint32_t>(to - buffer.data)};
  } else {
    memory_.fetch(range, to, length_bytes, fetch_tag());
  }
}

// READs see what they read in their order, whichever way they go. One packet is copied into its
// frame like any other.
void Burst::fetch_read(const MemoryRange& range, const Landing& landing, std::byte* to,
                       uint32_t length_bytes) {
  FrameBuffer& buffer = frames_.back().buffer;
  if (range.mapped != nullptr) memory_.settle_fetches();
  if (landing.at != nullptr && lends_ && landing.epoch == landing_epoch_ &&
      buffer.run.packets > 1 && memory_.land(range, landing.at, length_bytes)) {
    buffer.lent = {landing.at, length_bytes, static_cast<uint32_t>(to - buffer.data)};
  } else {
    memory_.fetch(range, to, length_bytes, fetch_tag());
  }
}

void Burst::offer_landing(const MemoryRange& range) {
  Frame& frame = frames_.back();
  if (landing_epoch_ != 0 && memory_.can_land(range))
    frame.buffer.landing = {range.mapped, landing_epoch_, frame.qp->qpn()};
}

void Burst::spread_added(const Path& path) {
  constexpr uint32_t kPorts = 0xc000;        // 14 bits of them (IBTA annex A17)
  constexpr uint32_t kOdd = 2'654'435'761u;  // the golden ratio: neighbours get ports far apart
  const uint32_t port = kPorts | (++spread_ * kOdd >> 18);
  store_be16(frames_.back().buffer.data + path.headers.size_bytes() - kUdpBytes, port);
}

std::byte* Burst::add_whole(Qp& qp, wire::Psn psn, uint32_t frame_bytes) {
  FrameBuffer buffer;
  if (!sink_->allocate(buffer)) return nullptr;
  ++packets_;
  weight_ += kFrameWeight + frame_bytes;
  frames_.push_back({buffer, &qp, frame_bytes, psn, 0, static_cast<uint16_t>(frame_bytes), 0,
                     Side::requester, false});
  return buffer.data;
}

std::byte* Burst::add_segment(Qp& qp, wire::Psn psn, uint32_t frame_bytes,
                              const wire::TcpSegment& segment) {
  std::byte* const frame = add_whole(qp, psn, frame_bytes);
  if (frame == nullptr) return nullptr;
  frames_.back().segment = static_cast<int32_t>(segments_.size());
  segments_.push_back(segment);
  return frame;
}

void Burst::mark_ecn_capable() {
  const Frame& frame = frames_.back();
  if (frame.payload_bytes == 0) return;
  wire::mark_ecn_capable(frame.buffer.data + frame.l3_offset_bytes);
}

// Returns false when the frame may not leave.
bool Burst::seal(Frame& frame) {
  const std::span bytes(frame.buffer.data, frame.length_bytes - frame.telemetry_bytes);
  if (frame.l3_offset_bytes != 0) [[likely]] {
    if (owes_icrc_) {
      frame.buffer.icrc_owed_from = frame.l3_offset_bytes;
    } else {
      wire::store_icrc(bytes.subspan(frame.l3_offset_bytes));
    }
    return true;
  }
  const bool is_right =
      frame.segment < 0 || wire::finish_tcp_segment(bytes, segments_[frame.segment]);
  if (is_right && !wire::may_be_roce(bytes)) return true;
  frame.qp->tally().note(TraceEvent::message_dropped);
  return false;
}

void Burst::discard_from(uint32_t index) {
  const Frame first = frames_[index];
  if (first.discarded) return;
  for (size_t i = index; i < frames_.size(); ++i) {
    Frame& frame = frames_[i];
    if (frame.qp == first.qp && frame.side == first.side) frame.discarded = true;
  }
  first.qp->on_fetch_failed(first.side, first.psn);
  failed_qps_.push_back(first.qp);
}

unsigned Burst::finish() {
  memory_.flush_fetches(failed_);
  for (uint32_t index : failed_) discard_from(index);
  failed_.clear();
  unsigned sent = 0;
  for (Frame& frame : frames_) {
    if (frame.discarded || !seal(frame)) {
      sink_->discard(frame.buffer);
      continue;
    }
    const uint32_t packets = frame.buffer.run.packets;
    frame.qp->tally().note_sent({{frame.buffer.data, frame.length_bytes},
                                 frame.l3_offset_bytes,
                                 frame.payload_bytes,
                                 frame.side == Side::responder},
                                frame.psn.value(), packets);
    sink_->send(frame.buffer, frame.length_bytes);
    sent += packets;
  }
  frames_.clear();
  segments_.clear();
  for (Qp* qp : waiting_qps_) qp->on_burst_sent();
  waiting_qps_.clear();
  return sent;
}

}  // namespace rocemu::transport
