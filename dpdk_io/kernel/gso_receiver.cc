#include "dpdk_io/kernel/gso_receiver.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kRestBytes = kMaxGsoBytes + kMaxHeadersBytes;
constexpr unsigned kFirstSegmentBytes = 4112;  // a RoCEv2 packet in the middle of a message

}  // namespace

GsoReceiver::GsoReceiver(FramePool& pool, unsigned prefix_bytes, bool headers_come,
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

GsoReceiver::~GsoReceiver() {
  for (Slot& slot : slots_)
    for (rte_mbuf* frame : slot.frames)
      if (frame != nullptr) FramePool::free(frame);
}

std::span<mmsghdr> GsoReceiver::prepare() noexcept {
  if (next_layout_ != layout_) {
    layout_ = next_layout_;
    for (Slot& slot : slots_) slot.prepared = false;
  }
  // While batches come, few slots are enough, and only these hold frames for a batch.
  const unsigned most = std::exchange(batches_come_, false) ? kBatchSlots : kSlots;
  unsigned count = 0;
  while (count < most && (slots_[count].prepared || prepare(count))) ++count;
  return {messages_.data(), count};
}

bool GsoReceiver::prepare(unsigned index) noexcept {
  Slot& slot = slots_[index];
  const unsigned wanted = index < kBatchSlots ? kSlotFrames : 1;
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

// A plan of how what came into a slot is cut into frames.
struct GsoReceiver::Cut {
  const std::byte* headers = nullptr;
  unsigned headers_bytes = 0;
  unsigned carried_bytes = 0;  // the headers, where they stand in front of the payloads
  unsigned payload_bytes = 0;  // sum over all frames
  unsigned step = 0;           // payload of each frame but the last, which may have less
  unsigned frames = 0;
  bool in_place = false;  // the payloads stand where the frames want them; else in `whole_`
  bool batch = false;     // more than one frame, as the kernel says
};

unsigned GsoReceiver::take(const Arrival& arrival, std::span<rte_mbuf*> burst, unsigned count,
                           const IdentificationSeal& seal, PortStats& stats) noexcept {
  Slot& slot = slots_[arrival.slot];
  slot.prepared = false;
  Cut cut;
  if (!plan(slot, arrival, cut)) {
    ++stats.dropped(DropReason::malformed);
    return count;
  }
  next_layout_.headers_bytes = cut.headers_bytes;
  if (arrival.segment_bytes != 0) {
    batches_come_ = true;
    next_layout_.segment_bytes =
        std::min(arrival.segment_bytes, longest_frame_bytes_ - kMaxHeadersBytes);
  }
  std::array<rte_mbuf*, kMaxArrivingFrames> room;
  const std::span made = std::span(room).first(make_frames(slot, cut, room, stats));
  if (cut.batch && headers_come_ && made.size() == cut.frames) restore_identification(made, seal);
  for (rte_mbuf* frame : made) {
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

// The payloads stay in place if they are laid out as was expected, and go by way of `whole_`
// otherwise. False: it cannot be frames of UDP datagrams.
bool GsoReceiver::plan(const Slot& slot, const Arrival& arrival, Cut& cut) noexcept {
  if (arrival.bytes < prefix_bytes_ || arrival.bytes - prefix_bytes_ > kRestBytes) return false;
  const unsigned total_bytes = arrival.bytes - prefix_bytes_;
  cut.headers = headers_come_ ? &slot.head[prefix_bytes_] : arrival.headers.data();
  cut.headers_bytes =
      headers_come_ ? headers_bytes_of({cut.headers, std::min(total_bytes, layout_.headers_bytes)})
                    : layout_.headers_bytes;
  cut.in_place = cut.headers_bytes == layout_.headers_bytes &&
                 (arrival.segment_bytes == 0 || arrival.segment_bytes == layout_.segment_bytes);
  if (!cut.in_place) {
    gather(slot, 0, total_bytes, whole_.get());
    if (headers_come_) {
      cut.headers = whole_.get();
      cut.headers_bytes = headers_bytes_of({cut.headers, total_bytes});
    }
  }
  if (cut.headers_bytes == 0) return false;
  cut.carried_bytes = headers_come_ ? cut.headers_bytes : 0;
  cut.payload_bytes = total_bytes - cut.carried_bytes;
  cut.step = arrival.segment_bytes != 0 ? arrival.segment_bytes : cut.payload_bytes;
  cut.frames = cut.payload_bytes == 0 ? 1 : (cut.payload_bytes + cut.step - 1) / cut.step;
  cut.batch = arrival.segment_bytes != 0 && cut.frames > 1;
  return cut.step <= longest_frame_bytes_ - cut.headers_bytes && cut.frames <= kMaxArrivingFrames;
}

// Returns how many of `made` it has filled: all but those for which the pool had no frame.
unsigned GsoReceiver::make_frames(Slot& slot, const Cut& cut, std::span<rte_mbuf*> made,
                                  PortStats& stats) noexcept {
  unsigned made_count = 0;
  const bool ipv4 = is_ipv4(cut.headers);
  const uint16_t first_identification = ipv4 ? identification_of(cut.headers) : 0;
  for (unsigned i = 0; i < cut.frames; ++i) {
    const unsigned length = std::min(cut.step, cut.payload_bytes - i * cut.step);
    rte_mbuf* const frame =
        cut.in_place ? frame_in_place(slot, i, length)
                     : frame_of_copy(whole_.get() + cut.carried_bytes + size_t{i} * cut.step,
                                     length, cut.headers_bytes);
    if (frame == nullptr) {
      ++stats.dropped(DropReason::queue_full);
      continue;
    }
    auto* const start = rte_pktmbuf_mtod(frame, std::byte*);
    std::memcpy(start, cut.headers, cut.headers_bytes);
    if (cut.batch && ipv4)
      write_identification(start, static_cast<uint16_t>(first_identification + i));
    if (cut.batch || !headers_come_) write_lengths(start, cut.headers_bytes, length);
    frame->data_len = static_cast<uint16_t>(cut.headers_bytes + length);
    frame->pkt_len = frame->data_len;
    made[made_count++] = frame;
  }
  return made_count;
}

// A batch that was put together from frames of the network (GRO) may have frames of one and the
// same identification as well; which it was, the second frame's seal tells.
void GsoReceiver::restore_identification(std::span<rte_mbuf* const> batch,
                                         const IdentificationSeal& seal) noexcept {
  constexpr unsigned kEthernetBytes = 14;
  const auto* const first = rte_pktmbuf_mtod(batch[0], const std::byte*);
  if (!is_ipv4(first) || seal.fits({rte_pktmbuf_mtod(batch[1], const std::byte*) + kEthernetBytes,
                                    batch[1]->data_len - size_t{kEthernetBytes}}))
    return;
  for (rte_mbuf* frame : batch.subspan(1))
    write_identification(rte_pktmbuf_mtod(frame, std::byte*), identification_of(first));
}

// The payload stands in the slot's frame of that number already, if there is one. A single frame
// may go on in the frames behind it.
rte_mbuf* GsoReceiver::frame_in_place(Slot& slot, unsigned number,
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

rte_mbuf* GsoReceiver::frame_of_copy(const std::byte* payload, unsigned payload_bytes,
                                     unsigned headers_bytes) noexcept {
  rte_mbuf* const frame = pool_.allocate();
  if (frame != nullptr)
    std::memcpy(rte_pktmbuf_mtod(frame, std::byte*) + headers_bytes, payload, payload_bytes);
  return frame;
}

// Copies `bytes` of what stands behind the prefix, over all parts of a slot.
void GsoReceiver::gather(const Slot& slot, size_t from, size_t bytes,
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
