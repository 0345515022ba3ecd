// A frame's bytes with several holders, none of whom changes them: what switches outside of DPDK
// carry (dpdk_io has mbufs for that).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "impairment/link.h"

namespace rocemu::network {

class SharedFrame {
 public:
  SharedFrame() = default;
  // A copy of `bytes`, which may be several packets with so much payload each; that may stand
  // elsewhere, at `lent`, where nobody here looks at it.
  explicit SharedFrame(std::span<const std::byte> bytes, uint32_t segment_bytes = 0,
                       const std::byte* lent = nullptr)
      : bytes_(std::make_shared_for_overwrite<std::byte[]>(bytes.size())),
        size_(bytes.size()),
        segment_bytes_(segment_bytes),
        lent_(lent) {
    std::ranges::copy(bytes, bytes_.get());
  }

  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  uint32_t segment_bytes() const { return segment_bytes_; }  // 0: one packet
  const std::byte* lent() const { return lent_; }

 private:
  friend struct SharedFrames;

  std::shared_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
  uint32_t segment_bytes_ = 0;
  const std::byte* lent_ = nullptr;
};

struct SharedFrames {
  using Frame = SharedFrame;
  static const std::byte* bytes(const Frame& frame) { return frame.bytes_.get(); }
  static size_t length_bytes(const Frame& frame) { return frame.size_; }
  static void share(const Frame&, unsigned) {}
  static void release(const Frame&) {}
  static std::byte* writable(Frame& frame) {
    if (frame.bytes_.use_count() > 1)
      frame = Frame(frame.bytes(), frame.segment_bytes_, frame.lent_);
    return frame.bytes_.get();
  }
  static void shorten(Frame& frame, size_t length_bytes) { frame.size_ = length_bytes; }
  static bool corrupt(Frame& frame, const impairment::Arrival& arrival) {
    frame = Frame(frame.bytes(), frame.segment_bytes_, frame.lent_);
    impairment::corrupt(arrival, {frame.bytes_.get(), frame.size_});
    return true;
  }
};

}  // namespace rocemu::network
