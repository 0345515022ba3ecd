// Frames of which only the headers are there: what a switch reads and writes, what a NIC parses,
// and how long the frame would be. The payload of a simulated NIC is nobody's and is not moved.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "base/byte_order.h"
#include "base/net/headers.h"
#include "base/net/path_telemetry.h"

namespace rocemu::experiment {

class HeaderFramePool;

struct HeaderFrame {
  // All headers of any packet of RoCEv2, and as much of a small payload as follows them: a
  // selective NAK has 58 bytes and a bitmap of 128.
  static constexpr uint32_t kKeptBytes = 192;
  // The most that is kept of the bytes behind the UDP datagram, where path telemetry travels.
  static constexpr uint32_t kMaxTailBytes = kMaxTelemetryBytes;

  HeaderFramePool* pool = nullptr;
  HeaderFrame* next_free = nullptr;
  uint32_t length_bytes = 0;
  uint32_t holders = 0;
  bool shortened = false;  // by a switch: its ICRC is not its own any more
  uint8_t tail_bytes = 0;  // behind the UDP datagram
  std::array<std::byte, kKeptBytes> headers;
  std::array<std::byte, kMaxTailBytes> tail;

  // Writes what is kept to where the frame is to be. Precondition: room for its length.
  void write(std::byte* to) const {
    std::ranges::copy(kept(), to);
    std::copy_n(tail.begin(), tail_bytes, to + length_bytes - tail_bytes);
  }
  std::span<const std::byte> kept() const {
    return std::span(headers).first(std::min(length_bytes, kKeptBytes));
  }
};

// Outlives its frames. They are kept for the next ones, so that a simulation in steady state takes
// no memory.
class HeaderFramePool {
 public:
  HeaderFramePool() = default;
  HeaderFramePool(const HeaderFramePool&) = delete;
  HeaderFramePool& operator=(const HeaderFramePool&) = delete;

  // A frame of `length_bytes`, of which `bytes` has what is kept.
  HeaderFrame* make(const std::byte* bytes, uint32_t length_bytes) {
    HeaderFrame* const frame = take();
    frame->length_bytes = length_bytes;
    std::copy_n(bytes, frame->kept().size(), frame->headers.begin());
    frame->tail_bytes = tail_of(bytes, length_bytes);
    if (frame->tail_bytes != 0) [[unlikely]]
      std::copy_n(bytes + length_bytes - frame->tail_bytes, frame->tail_bytes, frame->tail.begin());
    return frame;
  }
  HeaderFrame* copy(const HeaderFrame& from) {
    HeaderFrame* const frame = take();
    frame->length_bytes = from.length_bytes;
    frame->headers = from.headers;
    frame->shortened = from.shortened;
    frame->tail_bytes = from.tail_bytes;
    frame->tail = from.tail;
    return frame;
  }
  void give_back(HeaderFrame* frame) noexcept {
    if (--frame->holders > 0) return;
    frame->next_free = free_;
    free_ = frame;
  }

 private:
  // NICs here send untagged IPv4 alone.
  static uint8_t tail_of(const std::byte* bytes, uint32_t length_bytes) {
    const uint32_t datagram_end =
        kEthernetBytes + kIpv4Bytes + load_be16(bytes + kEthernetBytes + kIpv4Bytes + 4);
    const uint32_t tail_bytes = length_bytes - std::min(length_bytes, datagram_end);
    return static_cast<uint8_t>(tail_bytes <= HeaderFrame::kMaxTailBytes ? tail_bytes : 0);
  }

  HeaderFrame* take() {
    HeaderFrame* frame = free_;
    if (frame == nullptr) {
      frame = &frames_.emplace_back();
      frame->pool = this;
    } else {
      free_ = frame->next_free;
    }
    frame->holders = 1;
    frame->shortened = false;
    return frame;
  }

  std::deque<HeaderFrame> frames_;
  HeaderFrame* free_ = nullptr;
};

// The `Frames` of network::Network: see network/README.md.
struct HeaderFrames {
  using Frame = HeaderFrame*;
  static const std::byte* bytes(Frame frame) { return frame->headers.data(); }
  static size_t length_bytes(Frame frame) { return frame->length_bytes; }
  static size_t readable_bytes(Frame frame) { return frame->kept().size(); }
  static void share(Frame frame, unsigned more) { frame->holders += more; }
  static void release(Frame frame) { frame->pool->give_back(frame); }
  static std::byte* writable(Frame& frame) {
    if (frame->holders > 1) {
      HeaderFrame* const own = frame->pool->copy(*frame);
      release(frame);
      frame = own;
    }
    return frame->headers.data();
  }
  static std::byte* writable_at(Frame& frame, size_t offset, size_t bytes) {
    if (frame->tail_bytes == 0 || offset + frame->tail_bytes != frame->length_bytes ||
        bytes > frame->tail_bytes)
      return nullptr;
    writable(frame);
    return frame->tail.data();
  }
  static void shorten(Frame& frame, size_t length_bytes) {
    frame->length_bytes = static_cast<uint32_t>(length_bytes);
    frame->shortened = true;
    frame->tail_bytes = 0;
  }
};

}  // namespace rocemu::experiment
