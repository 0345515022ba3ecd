// A frame's bytes with several holders, none of whom changes them, but for the place of what is
// lent: what switches outside of DPDK carry (dpdk_io has mbufs for that).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "impairment/link.h"

namespace rocemu::network {

// Payload that stands elsewhere, and where it belongs in the frame.
struct LentBytes {
  const std::byte* bytes = nullptr;  // nullptr: all of the frame is in it
  size_t length_bytes = 0;
  size_t offset_bytes = 0;
};

// Memory of its sender that the data it asks for may be put into, in so far as whoever does so
// knows the number.
struct LandingPlace {
  std::byte* at = nullptr;  // nullptr: none
  uint64_t epoch = 0;
  uint32_t requester = 0;
};

class SharedFrame {
 public:
  SharedFrame() = default;
  // A copy of `bytes`, which may be several packets with so much payload each; that may be lent,
  // and nobody here looks at it then.
  explicit SharedFrame(std::span<const std::byte> bytes, uint32_t segment_bytes = 0,
                       const LentBytes& lent = {}, const LandingPlace& landing = {})
      : bytes_(std::make_shared_for_overwrite<std::byte[]>(bytes.size())),
        size_(bytes.size()),
        segment_bytes_(segment_bytes),
        lent_(lent),
        landing_(landing) {
    std::ranges::copy(bytes, bytes_.get());
  }

  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  uint32_t segment_bytes() const { return segment_bytes_; }  // 0: one packet
  const std::byte* lent() const { return lent_.bytes; }
  const LandingPlace& landing() const { return landing_; }
  // Copies what is lent into the frame. Others who hold it may do so as well. One that was moved
  // from has nothing to copy into.
  void take_lent() {
    if (lent_.bytes != nullptr && bytes_ != nullptr)
      std::copy_n(lent_.bytes, lent_.length_bytes, bytes_.get() + lent_.offset_bytes);
    lent_ = {};
  }

 private:
  friend struct SharedFrames;

  std::shared_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
  uint32_t segment_bytes_ = 0;
  LentBytes lent_;
  LandingPlace landing_;
};

struct SharedFrames {
  using Frame = SharedFrame;
  static const std::byte* bytes(const Frame& frame) { return frame.bytes_.get(); }
  static size_t length_bytes(const Frame& frame) { return frame.size_; }
  static void share(const Frame&, unsigned) {}
  static void release(const Frame&) {}
  static std::byte* writable(Frame& frame) {
    if (frame.bytes_.use_count() > 1) frame = copy(frame);
    return frame.bytes_.get();
  }
  static Frame copy(const Frame& frame) {
    return Frame(frame.bytes(), frame.segment_bytes_, frame.lent_, frame.landing_);
  }
  static void shorten(Frame& frame, size_t length_bytes) { frame.size_ = length_bytes; }
  static bool corrupt(Frame& frame, const impairment::Arrival& arrival) {
    frame = copy(frame);
    impairment::corrupt(arrival, {frame.bytes_.get(), frame.size_});
    return true;
  }
};

}  // namespace rocemu::network
