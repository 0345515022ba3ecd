// CaptureFlusher writes a capture out when the engine has time, so that the file on disk is never
// more than kPeriodNs behind the wire, and what the writer itself holds back. Only the engine
// thread uses it.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "dpdk_io/port/frame_writer.h"

namespace rocemu::daemon {

class CaptureFlusher {
 public:
  // The writer outlives this object; without one there is nothing to flush.
  void set_writer(dpdk_io::FrameWriter* writer) { writer_ = writer; }

  void flush_if_due(TimeNs now) {
    if (!has_news() || now < next_flush_ns_) return;
    writer_->flush();
    flushed_frames_ = writer_->frames_written();
    next_flush_ns_ = now + kPeriodNs;
  }
  // The time at which to call flush_if_due() at the latest; kNever while nothing has been captured
  // since.
  TimeNs next_flush_ns() const { return has_news() ? next_flush_ns_ : kNever; }

 private:
  static constexpr TimeNs kPeriodNs = 100'000'000;

  bool has_news() const {
    return writer_ != nullptr &&
           (writer_->frames_written() != flushed_frames_ || writer_->holds_back());
  }

  dpdk_io::FrameWriter* writer_ = nullptr;
  uint64_t flushed_frames_ = 0;
  TimeNs next_flush_ns_ = 0;
};

}  // namespace rocemu::daemon
