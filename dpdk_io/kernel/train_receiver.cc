#include "dpdk_io/kernel/train_receiver.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kRestBytes = kMaxTrainBytes + kMaxHeadersBytes;
constexpr unsigned kFirstSegmentBytes = 4112;  // a RoCEv2 packet in the middle of a message

}  // namespace

TrainReceiver::TrainReceiver(FramePool& pool, unsigned prefix_bytes, bool headers_come,
                             unsigned headers_bytes)
    : pool_(pool),
      prefix_bytes_(prefix_bytes),
      headers_come_(headers_come),
      longest_frame_bytes_(rte_pktmbuf_data_room_size(pool.mempool()) - RTE_PKTMBUF_HEADROOM),
      layout_{headers_bytes, std::min(kFirstSegmentBytes, longest_frame_bytes_ - kMaxHeadersBytes)},
      next_layout_(layout_),
      whole_(new std::byte[kRestBytes]),
      ready_(kSlots * kMaxArrivingFrames) {
  for (Slot& slot : slots_) slot.rest.reset(new std::byte[kRestBytes]);
}

TrainReceiver::~TrainReceiver() {
  for (Slot& slot : slots_)
    for (rte_mbuf* frame : slot.frames)
      if (frame != nullptr) FramePool::free(frame);
}

std::span<mmsghdr> TrainReceiver::prepare() noexcept {
  if (next_layout_ != layout_) {
    layout_ = next_layout_;
    for (Slot& slot : slots_) slot.prepared = false;
  }
  // Where trains come, few slots are enough, and the others hold no frames for one.
  const unsigned most = std::exchange(trains_come_, false) ? kTrainSlots : kSlots;
  unsigned count = 0;
  while (count < most && (slots_[count].prepared || prepare(count))) ++count;
  return {messages_.data(), count};
}

bool TrainReceiver::prepare(unsigned index) noexcept {
  Slot& slot = slots_[index];
  const unsigned wanted = index < kTrainSlots ? kSlotFrames : 1;
  slot.frame_count = 0;
  while (slot.frame_count < wanted) {
    rte_mbuf*& frame = slot.frames[slot.frame_count];
    if (frame == nullptr && (frame = pool_.allocate()) == nullptr) break;
    ++slot.frame_count;
    slot.parts[slot.frame_count] = {rte_pktmbuf_mtod(frame, std::byte*) + layout_.headers_bytes,
                                    layout_.segment_bytes};
  }
  if (slot.frame_count == 0) return false;
  slot.parts[0] = {slot.head.data(), prefix_bytes_ + head_bytes()};
  slot.parts[slot.frame_count + 1] = {slot.rest.get(), kRestBytes};
  messages_[index].msg_hdr.msg_iov = slot.parts.data();
  messages_[index].msg_hdr.msg_iovlen = slot.frame_count + 2;
  slot.prepared = true;
  return true;
}

unsigned TrainReceiver::take(const Arrival& arrival, std::span<rte_mbuf*> burst, unsigned count,
                             const IdentificationSeal& seal, PortStats& stats) noexcept {
  Slot& slot = slots_[arrival.slot];
  slot.prepared = false;
  const auto malformed = [&] {
    ++stats.dropped(DropReason::malformed);
    return count;
  };
  if (arrival.bytes < prefix_bytes_ || arrival.bytes - prefix_bytes_ > kRestBytes)
    return malformed();
  const unsigned total_bytes = arrival.bytes - prefix_bytes_;

  // In place, if it is laid out as was expected; otherwise by way of `whole_`.
  const std::byte* headers = headers_come_ ? &slot.head[prefix_bytes_] : arrival.headers.data();
  unsigned headers_bytes =
      headers_come_ ? headers_bytes_of({headers, std::min(total_bytes, layout_.headers_bytes)})
                    : layout_.headers_bytes;
  const bool in_place =
      headers_bytes == layout_.headers_bytes &&
      (arrival.segment_bytes == 0 || arrival.segment_bytes == layout_.segment_bytes);
  if (!in_place) {
    gather(slot, 0, total_bytes, whole_.get());
    if (headers_come_) {
      headers = whole_.get();
      headers_bytes = headers_bytes_of({headers, total_bytes});
    }
  }
  if (headers_bytes == 0) return malformed();
  const unsigned carried_bytes = headers_come_ ? headers_bytes : 0;
  const unsigned payload_bytes = total_bytes - carried_bytes;
  const unsigned step = arrival.segment_bytes != 0 ? arrival.segment_bytes : payload_bytes;
  const unsigned frames = payload_bytes == 0 ? 1 : (payload_bytes + step - 1) / step;
  if (step > longest_frame_bytes_ - headers_bytes || frames > kMaxArrivingFrames)
    return malformed();
  next_layout_.headers_bytes = headers_bytes;
  if (arrival.segment_bytes != 0) {
    trains_come_ = true;
    next_layout_.segment_bytes =
        std::min(arrival.segment_bytes, longest_frame_bytes_ - kMaxHeadersBytes);
  }

  std::array<rte_mbuf*, kMaxArrivingFrames> made;
  unsigned made_count = 0;
  const bool ipv4 = is_ipv4(headers);
  const bool train = arrival.segment_bytes != 0 && frames > 1;
  const uint16_t first_identification = ipv4 ? identification_of(headers) : 0;
  for (unsigned i = 0; i < frames; ++i) {
    const unsigned length = std::min(step, payload_bytes - i * step);
    rte_mbuf* const frame =
        in_place
            ? frame_in_place(slot, i, length)
            : frame_of_copy(whole_.get() + carried_bytes + size_t{i} * step, length, headers_bytes);
    if (frame == nullptr) {
      ++stats.dropped(DropReason::queue_full);
      continue;
    }
    auto* const start = rte_pktmbuf_mtod(frame, std::byte*);
    std::memcpy(start, headers, headers_bytes);
    if (train && ipv4) write_identification(start, static_cast<uint16_t>(first_identification + i));
    if (train || !headers_come_) write_lengths(start, headers_bytes, length);
    frame->data_len = static_cast<uint16_t>(headers_bytes + length);
    frame->pkt_len = frame->data_len;
    made[made_count++] = frame;
  }

  // A train that was put together from frames of the network (GRO) may have frames of one and the
  // same identification as well.
  constexpr unsigned kEthernetBytes = 14;
  if (train && ipv4 && headers_come_ && made_count == frames &&
      !seal.fits({rte_pktmbuf_mtod(made[1], const std::byte*) + kEthernetBytes,
                  made[1]->data_len - size_t{kEthernetBytes}})) {
    for (unsigned i = 1; i < made_count; ++i)
      write_identification(rte_pktmbuf_mtod(made[i], std::byte*), first_identification);
  }

  for (rte_mbuf* frame : std::span(made).first(made_count)) {
    const uint32_t length = frame->pkt_len;
    if (count < burst.size()) {
      burst[count++] = frame;
    } else if (!ready_.push(frame)) {
      ++stats.dropped(DropReason::queue_full);
      FramePool::free(frame);
      continue;
    }
    ++stats.rx_frames;
    stats.rx_bytes += length;
  }
  return count;
}

// The payload stands in the slot's frame of that number already, if there is one. A single frame
// may go on in the frames behind it.
rte_mbuf* TrainReceiver::frame_in_place(Slot& slot, unsigned number,
                                        unsigned payload_bytes) noexcept {
  const size_t offset = head_bytes() + size_t{number} * layout_.segment_bytes;
  if (number >= slot.frame_count) {
    rte_mbuf* const frame = pool_.allocate();
    if (frame != nullptr)
      gather(slot, offset, payload_bytes,
             rte_pktmbuf_mtod(frame, std::byte*) + layout_.headers_bytes);
    return frame;
  }
  rte_mbuf* const frame = std::exchange(slot.frames[number], nullptr);
  if (payload_bytes > layout_.segment_bytes)
    gather(slot, offset + layout_.segment_bytes, payload_bytes - layout_.segment_bytes,
           rte_pktmbuf_mtod(frame, std::byte*) + layout_.headers_bytes + layout_.segment_bytes);
  return frame;
}

rte_mbuf* TrainReceiver::frame_of_copy(const std::byte* payload, unsigned payload_bytes,
                                       unsigned headers_bytes) noexcept {
  rte_mbuf* const frame = pool_.allocate();
  if (frame != nullptr)
    std::memcpy(rte_pktmbuf_mtod(frame, std::byte*) + headers_bytes, payload, payload_bytes);
  return frame;
}

// What stands behind the prefix, over all parts of a slot.
void TrainReceiver::gather(const Slot& slot, size_t from, size_t bytes,
                           std::byte* to) const noexcept {
  for (unsigned part = 0; part < slot.frame_count + 2 && bytes != 0; ++part) {
    const size_t skipped = part == 0 ? prefix_bytes_ : 0;
    const auto* const start = static_cast<const std::byte*>(slot.parts[part].iov_base) + skipped;
    const size_t length = slot.parts[part].iov_len - skipped;
    if (from >= length) {
      from -= length;
      continue;
    }
    const size_t here = std::min(bytes, length - from);
    std::memcpy(to, start + from, here);
    to += here;
    bytes -= here;
    from = 0;
  }
}

}  // namespace rocemu::dpdk_io
