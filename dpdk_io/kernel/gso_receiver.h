// GsoReceiver holds the buffers for what a socket hands out, frames and GSO batches (gso_batch.h),
// and makes frames of it. A batch's payloads are read straight into the frames they belong to: each
// buffer is laid out for batches like the last one. Payloads that do not fit the layout are moved.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dpdk_io/kernel/gso_batch.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/frame_queue.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class GsoReceiver {
 public:
  static constexpr unsigned kSlots = 16;
  static constexpr unsigned kPrefixRoomBytes = 16;

  // `prefix_bytes` stand in front of what the socket hands out, at most kPrefixRoomBytes.
  // `headers_come`: frames have their headers; otherwise there is room for `headers_bytes` of them
  // in front of each.
  GsoReceiver(FramePool& pool, unsigned prefix_bytes, bool headers_come, unsigned headers_bytes);
  ~GsoReceiver();
  GsoReceiver(const GsoReceiver&) = delete;
  GsoReceiver& operator=(const GsoReceiver&) = delete;

  bool empty() const noexcept { return ready_.empty(); }
  // Frames that had no room in the burst before.
  unsigned pop(std::span<rte_mbuf*> burst) noexcept { return ready_.pop(burst); }

  // The messages for recvmmsg(): as many slots as have buffers. The caller adds names and control
  // messages.
  std::span<mmsghdr> prepare() noexcept;

  const std::byte* prefix(unsigned slot) const noexcept { return slots_[slot].head.data(); }

  // Describes what came into a slot.
  struct Arrival {
    unsigned slot = 0;
    unsigned bytes = 0;          // the prefix included
    unsigned segment_bytes = 0;  // payload of each frame of a batch; 0: it is a single frame
    // The headers that each frame gets when the socket gives none. Lengths are filled in, and
    // identifications count up from what stands there.
    std::span<const std::byte> headers;
  };
  // Appends its frames to `burst` from `count` on; what has no room waits for pop(). Counts what is
  // dropped. Returns the new count.
  unsigned take(const Arrival& arrival, std::span<rte_mbuf*> burst, unsigned count,
                const IdentificationSeal& seal, PortStats& stats) noexcept;

 private:
  static constexpr unsigned kBatchSlots = 4;
  static constexpr unsigned kSlotFrames = 16;          // a batch has 15 of the largest path MTU
  static constexpr unsigned kMaxArrivingFrames = 128;  // UDP_MAX_SEGMENTS of Linux
  static constexpr unsigned kParts = 2 + kSlotFrames;  // head, frames, the rest

  struct Layout {
    unsigned headers_bytes = 0;
    unsigned segment_bytes = 0;
    bool operator==(const Layout&) const = default;
  };

  struct Slot {
    std::array<std::byte, kPrefixRoomBytes + kMaxHeadersBytes> head;
    std::array<rte_mbuf*, kSlotFrames> frames{};
    std::array<iovec, kParts> parts;
    unsigned frame_count = 0;  // number of frames in `parts`
    bool prepared = false;
    std::unique_ptr<std::byte[]> rest;
  };

  unsigned head_bytes() const noexcept { return headers_come_ ? layout_.headers_bytes : 0; }
  struct Cut;

  bool prepare(unsigned index) noexcept;
  bool plan(const Slot& slot, const Arrival& arrival, Cut& cut) noexcept;
  unsigned make_frames(Slot& slot, const Cut& cut, std::span<rte_mbuf*> made,
                       PortStats& stats) noexcept;
  static void restore_identification(std::span<rte_mbuf* const> batch,
                                     const IdentificationSeal& seal) noexcept;
  void gather(const Slot& slot, size_t from, size_t bytes, std::byte* to) const noexcept;
  rte_mbuf* frame_in_place(Slot& slot, unsigned number, unsigned payload_bytes) noexcept;
  rte_mbuf* frame_of_copy(const std::byte* payload, unsigned payload_bytes,
                          unsigned headers_bytes) noexcept;

  FramePool& pool_;
  unsigned prefix_bytes_;
  bool headers_come_;
  unsigned longest_frame_bytes_;
  Layout layout_;       // layout of the slots' contents
  Layout next_layout_;  // layout from the next prepare() on
  bool batches_come_ = false;
  std::vector<Slot> slots_{kSlots};
  std::array<mmsghdr, kSlots> messages_{};
  std::unique_ptr<std::byte[]> whole_;
  FrameQueue ready_;
};

}  // namespace rocemu::dpdk_io
