// The thread that writes a trace's file: it takes the records out of the rings when one of them is
// half full, or when somebody asks. Files may be slow, and nobody else waits for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "emulator/daemon/tracing/traced_programs.h"
#include "emulator/trace/format/writer.h"
#include "emulator/trace/record/ring.h"

namespace rocemu::daemon {

class TraceWriter {
 public:
  // The rings and `names` outlive it. `on_end` is called by the thread, once, when the file has no
  // room or takes no more, with records still coming.
  TraceWriter(UniqueFd file, const trace::Header& header, uint64_t max_bytes,
              std::vector<trace::Ring*> rings, TracedPrograms& names, std::function<void()> on_end);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Any thread: what stands in the rings is to be written.
  void wake() noexcept {
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
  }
  // Any thread: these are to be written, before what is in the rings.
  void put(const std::vector<trace::Record>& records);

  // Nobody puts records into the rings any more: writes what there is, and `last` behind it. Calls
  // `done` by the thread when the file is complete.
  void finish(trace::Cause cause, std::function<void()> done);
  // Waits for that.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  // After that.
  uint64_t written_bytes() const { return writer_.written_bytes(); }
  uint64_t lost() const { return lost_; }
  int error() const { return writer_.error(); }

 private:
  void run();
  void write_all();
  void write_ring(trace::Ring& ring);
  void end_file();

  trace::Writer writer_;
  const std::vector<trace::Ring*> rings_;
  TracedPrograms& names_;
  std::function<void()> on_end_;
  uint64_t lost_ = 0;

  std::atomic<uint32_t> asked_{0};
  std::mutex mutex_;
  std::vector<trace::Record> put_;
  bool finishing_ = false;
  trace::Cause cause_{};
  std::function<void()> done_;
  std::thread thread_;
};

}  // namespace rocemu::daemon
