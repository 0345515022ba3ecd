#include "emulator/daemon/engine/port_frame_sink.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "dpdk_io/port/mbuf_frames.h"
#include "dpdk_io/port/owed_icrc.h"
#include "dpdk_io/port/run_mark.h"
#include "emulator/wire/icrc.h"

namespace rocemu::daemon {

namespace {

constexpr std::byte kGroupBit{1};  // in a MAC's first byte (IEEE 802-2014, 8.2.2)

std::span<const std::byte> bytes_of(const rte_mbuf* frame) noexcept {
  return {dpdk_io::MbufFrames::bytes(frame), dpdk_io::MbufFrames::length_bytes(frame)};
}

transport::ReceivedRun run_of(rte_mbuf* frame) noexcept {
  transport::ReceivedRun run{.segment_bytes = dpdk_io::segment_bytes(frame)};
  if (const dpdk_io::LentPayload* const lent = dpdk_io::lent_payload(frame)) {
    run.lent = lent->bytes;
    run.room = rte_pktmbuf_mtod_offset(frame, std::byte*, lent->offset_bytes);
  } else if (const dpdk_io::Landing* const landing = dpdk_io::landing_of(frame)) {
    run.landing = {landing->at, landing->epoch, wire::Qpn{landing->requester_qpn}};
  }
  return run;
}

unsigned packets_of(std::span<rte_mbuf* const> frames) noexcept {
  unsigned packets = 0;
  for (const rte_mbuf* frame : frames) packets += dpdk_io::counted_packets(frame);
  return packets;
}

}  // namespace

PortFrameSink::~PortFrameSink() {
  dpdk_io::FramePool::free_bulk({burst_.data(), waiting_});
  dpdk_io::FramePool::free_bulk({own_multicast_.data(), looped_back_});
}

unsigned PortFrameSink::receive(TimeNs now, transport::Endpoint& endpoint,
                                TurnBudget& budget) noexcept {
  std::array<rte_mbuf*, kBurst> frames;
  unsigned total = 0;
  if (looped_back_ != 0) [[unlikely]]
    total = receive_looped_back(now, endpoint);
  unread_ = false;
  for (;;) {
    const unsigned count = port_->receive(now, frames);
    if (count == 0) break;
    const std::span burst = std::span(frames).first(count);
    const unsigned packets = packets_of(burst);
    hand_over(now, endpoint, burst);
    dpdk_io::FramePool::free_bulk(burst);
    total += packets;
    budget.charge(packets);
    if (count < kBurst && !port_->has_work()) break;
    unread_ = total >= kReceiveBudget || budget.spent();
    if (unread_) break;
  }
  return total;
}

// Hands the frames over in runs of those that owe their ICRC, and of those that do not. What flows
// show to programs owes nothing.
void PortFrameSink::hand_over(TimeNs now, transport::Endpoint& endpoint,
                              std::span<rte_mbuf* const> frames) noexcept {
  if (!endpoint.flows().empty()) [[unlikely]]
    for (rte_mbuf* frame : frames) dpdk_io::pay_icrc(frame, wire::store_datagram_icrc);
  std::array<std::span<const std::byte>, kBurst> bytes;
  std::array<transport::ReceivedRun, kBurst> runs;
  while (!frames.empty()) {
    const bool owed = dpdk_io::owes_icrc(frames.front());
    size_t count = 0;
    while (count < frames.size() && dpdk_io::owes_icrc(frames[count]) == owed) {
      bytes[count] = bytes_of(frames[count]);
      runs[count] = run_of(frames[count]);
      ++count;
    }
    endpoint.on_frames(now, std::span(bytes).first(count),
                       owed ? transport::Icrc::owed : transport::Icrc::there,
                       std::span(runs).first(count));
    frames = frames.subspan(count);
  }
}

unsigned PortFrameSink::receive_looped_back(TimeNs now, transport::Endpoint& endpoint) noexcept {
  const unsigned count = looped_back_;
  for (unsigned i = 0; i < count; ++i) {
    const std::span<const std::byte> bytes = bytes_of(own_multicast_[i]);
    endpoint.on_frames(now, {&bytes, 1});
  }
  dpdk_io::FramePool::free_bulk({own_multicast_.data(), count});
  looped_back_ = 0;
  return count;
}

// When there is no room the frame is lost here, as any datagram may be.
void PortFrameSink::loop_back(rte_mbuf* frame) noexcept {
  if (looped_back_ == kBurst) return;
  rte_mbuf_refcnt_update(frame, 1);
  own_multicast_[looped_back_++] = frame;
}

unsigned PortFrameSink::transmit(TimeNs now, transport::Endpoint& endpoint) noexcept {
  sent_ = 0;
  if (waiting_ != 0) hand_to_port(now);
  if (!queued_.empty()) send_queued(now);
  if (waiting_ == 0 && endpoint.wants_transmit()) {
    endpoint.transmit(now, *this, kBurst);
    hand_to_port(now);
  }
  return sent_;
}

// What waits for the port that was may be runs, which whoever stands before it now is not to see:
// they are lost, as any frame may be.
void PortFrameSink::use_port(dpdk_io::Port& port) noexcept {
  port_ = &port;
  keep_waiting([](const rte_mbuf* frame) { return !dpdk_io::is_run(frame); });
}

void PortFrameSink::take_lent(dpdk_io::TakeLent copy) noexcept {
  keep_waiting([copy](rte_mbuf* frame) { return dpdk_io::take_lent(frame, copy); });
}

template <class Keep>
void PortFrameSink::keep_waiting(Keep keep) noexcept {
  const auto end = burst_.begin() + waiting_;
  const auto lost = std::stable_partition(burst_.begin(), end, keep);
  dpdk_io::FramePool::free_bulk({lost, end});
  waiting_ = static_cast<unsigned>(lost - burst_.begin());
}

bool PortFrameSink::queue(std::vector<std::byte> frame) {
  if (queued_.size() >= kMaxQueued || frame.size() > transport::kMaxFrameBytes) return false;
  queued_.push_back(std::move(frame));
  return true;
}

void PortFrameSink::send_queued(TimeNs now) noexcept {
  transport::FrameBuffer buffer;
  while (!queued_.empty() && allocate(buffer)) {
    const std::vector<std::byte>& frame = queued_.front();
    std::copy(frame.begin(), frame.end(), buffer.data);
    send(buffer, static_cast<uint32_t>(frame.size()));
    queued_.pop_front();
  }
  hand_to_port(now);
}

bool PortFrameSink::allocate(transport::FrameBuffer& buffer) noexcept {
  return waiting_ + being_built_ != kBurst && take(buffer, pool_.allocate());
}

bool PortFrameSink::allocate_run(transport::FrameBuffer& buffer) noexcept {
  dpdk_io::FramePool* const pool = port_->run_pool();
  return pool != nullptr && waiting_ + being_built_ != kBurst && take(buffer, pool->allocate());
}

// False: `frame` is null, since the pool has none.
bool PortFrameSink::take(transport::FrameBuffer& buffer, rte_mbuf* frame) noexcept {
  if (frame == nullptr) return false;
  ++being_built_;
  buffer.data = rte_pktmbuf_mtod(frame, std::byte*);
  buffer.handle = frame;
  return true;
}

void PortFrameSink::send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept {
  auto* frame = static_cast<rte_mbuf*>(buffer.handle);
  frame->data_len = static_cast<uint16_t>(length_bytes);
  frame->pkt_len = length_bytes;
  --being_built_;
  burst_[waiting_++] = frame;
  if (buffer.icrc_owed_from != 0) dpdk_io::owe_icrc(frame, buffer.icrc_owed_from);
  if (buffer.run.packets > 1)
    dpdk_io::mark_run(frame,
                      {buffer.run.packets, buffer.run.segment_bytes, buffer.run.frame_bytes});
  if (buffer.lent.bytes != nullptr)
    dpdk_io::mark_lent(frame,
                       {buffer.lent.bytes, buffer.lent.length_bytes, buffer.lent.offset_bytes});
  if (buffer.landing.at != nullptr)
    dpdk_io::mark_landing(
        frame, {buffer.landing.at, buffer.landing.epoch, buffer.landing.requester.value});
  if (std::to_integer<unsigned>(*buffer.data & kGroupBit) != 0) [[unlikely]] {
    dpdk_io::pay_icrc(frame, wire::store_datagram_icrc);  // it gets several holders
    loop_back(frame);
  }
}

void PortFrameSink::discard(const transport::FrameBuffer& buffer) noexcept {
  --being_built_;
  dpdk_io::FramePool::free(static_cast<rte_mbuf*>(buffer.handle));
}

void PortFrameSink::hand_to_port(TimeNs now) noexcept {
  const unsigned packets = packets_of({burst_.data(), waiting_});
  const unsigned taken = port_->transmit(now, {burst_.data(), waiting_});
  sent_ += packets - packets_of({burst_.data() + taken, waiting_ - taken});
  std::copy(burst_.begin() + taken, burst_.begin() + waiting_, burst_.begin());
  waiting_ -= taken;
}

}  // namespace rocemu::daemon
