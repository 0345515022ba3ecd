// A Capture records the frames of a switch or a port when it has a writer for them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

#include "dpdk_io/port/frame_writer.h"
#include "dpdk_io/port/mbuf_frames.h"

namespace rocemu::dpdk_io {

class Capture {
 public:
  using Clock = std::function<uint64_t()>;  // nanoseconds since the epoch

  // Frames are recorded with the time that `clock` has then. nullptr ends the recording; the writer
  // must outlive it. Throws std::runtime_error when there is a writer without a clock.
  void set(FrameWriter* writer, Clock clock) {
    if (writer != nullptr && !clock) throw std::runtime_error("a capture needs a clock");
    writer_ = writer;
    clock_ = std::move(clock);
  }

  bool on() const noexcept { return writer_ != nullptr; }

  // Precondition: on().
  void record(std::span<rte_mbuf* const> burst) noexcept {
    const uint64_t now_ns = clock_();
    for (const rte_mbuf* frame : burst)
      writer_->write({MbufFrames::bytes(frame), frame->data_len}, now_ns);
  }

 private:
  FrameWriter* writer_ = nullptr;
  Clock clock_;
};

}  // namespace rocemu::dpdk_io
