#include "emulator/daemon/tracing/trace_writer.h"

#include <pthread.h>

#include <csignal>
#include <utility>

#include "base/monotonic_clock.h"

namespace rocemu::daemon {

TraceWriter::TraceWriter(UniqueFd file, const trace::Header& header, uint64_t max_bytes,
                         std::vector<trace::Ring*> rings, TracedPrograms& names,
                         std::function<void()> on_end)
    : writer_(std::move(file), header, max_bytes),
      rings_(std::move(rings)),
      names_(names),
      on_end_(std::move(on_end)) {
  // Signals are the control thread's.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TraceWriter::~TraceWriter() {
  finish(trace::Cause::nic_ended, {});
  wait();
}

void TraceWriter::put(const std::vector<trace::Record>& records) {
  {
    const std::lock_guard lock(mutex_);
    put_.insert(put_.end(), records.begin(), records.end());
  }
  wake();
}

void TraceWriter::finish(trace::Cause cause, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (finishing_) return;
    finishing_ = true;
    cause_ = cause;
    done_ = std::move(done);
  }
  wake();
}

void TraceWriter::run() {
  ::pthread_setname_np(::pthread_self(), "trace-writer");
  for (;;) {
    const uint32_t seen = asked_.load(std::memory_order_acquire);
    bool finishing = false;
    {
      const std::lock_guard lock(mutex_);
      finishing = finishing_;
    }
    write_all();
    if (finishing) return end_file();
    asked_.wait(seen, std::memory_order_acquire);
  }
}

void TraceWriter::write_all() {
  writer_.append(names_.take_new());
  std::vector<trace::Record> put;
  {
    const std::lock_guard lock(mutex_);
    put.swap(put_);
  }
  writer_.append(put);
  for (trace::Ring* const ring : rings_) write_ring(*ring);
  if (writer_.state() != trace::Writer::State::open && on_end_) std::exchange(on_end_, {})();
}

// No more than the ring holds at a time, so that all rings have their turn.
void TraceWriter::write_ring(trace::Ring& ring) {
  size_t taken = 0;
  for (auto piece = ring.peek(); !piece.empty() && taken < ring.capacity(); piece = ring.peek()) {
    writer_.append(piece);
    ring.release(piece.size());
    taken += piece.size();
  }
  const uint64_t lost = ring.take_lost();
  if (lost == 0) return;
  lost_ += lost;
  trace::Record record;
  record.time_ns = monotonic_now_ns();
  record.kind = trace::Kind::lost;
  record.value = lost;
  writer_.append({&record, 1});
}

void TraceWriter::end_file() {
  using State = trace::Writer::State;
  trace::Record record;
  record.time_ns = monotonic_now_ns();
  record.kind = trace::Kind::stopped;
  record.cause = writer_.state() == State::open   ? cause_
                 : writer_.state() == State::full ? trace::Cause::file_full
                                                  : trace::Cause::write_failed;
  record.value = writer_.left_out();
  lost_ += writer_.left_out();
  writer_.finish(record);
  if (done_) done_();
}

}  // namespace rocemu::daemon
