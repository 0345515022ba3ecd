// A FrameWriter is where a capture writes frames to: a file of some format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::dpdk_io {

// Used by one thread.
class FrameWriter {
 public:
  virtual ~FrameWriter() = default;

  // A frame that passes now; `realtime_ns` counts from the epoch.
  virtual void write(std::span<const std::byte> frame, uint64_t realtime_ns) noexcept = 0;
  // Writes out what is to be in the file by now.
  virtual void flush() noexcept = 0;
  // Frames taken so far: who has flushed sees by it whether more have come.
  virtual uint64_t frames_written() const noexcept = 0;
  // True while frames are held back that a later flush() writes.
  virtual bool holds_back() const noexcept { return false; }
};

}  // namespace rocemu::dpdk_io
