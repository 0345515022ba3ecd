// shared_moves: how fast the NIC moves bytes from programs to others with several threads, and
// nothing else of it.
//
//   shared_moves [--threads N] [--qps N] [--programs N] [--run-bytes N] [--seconds S]
//
// Each turn a run of each QP comes from its program in one batch, and goes to that of its peer in
// another one; all threads wait for each other after each batch. The default is the longest burst
// of the NIC, eight runs. Prints gigabytes (10^9) a second.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "emulator/daemon/engine/turn_workers.h"
#include "emulator/dma/batch.h"
#include "emulator/dma/movers.h"
#include "tests/bench/arguments.h"
#include "tests/bench/holder.h"

namespace {

using rocemu::bench::Holder;
using Clock = std::chrono::steady_clock;

constexpr size_t kBufferStride = 33 * 1024;  // of a run's buffer: payloads do not lie back to back

class Workers final : public rocemu::dma::Movers {
 public:
  explicit Workers(unsigned threads) : threads_(threads), workers_(threads - 1) {}

  void run(unsigned jobs, const std::function<void(unsigned)>& job) noexcept override {
    workers_.run(~uint64_t{0} >> (workers_.kMaxJobs - jobs), std::min(threads_, jobs) - 1, job,
                 [] {});
  }

 private:
  unsigned threads_;
  rocemu::daemon::TurnWorkers workers_;
};

// Holder's own memory is reached from its first byte on, which it says by what lies there.
std::unique_ptr<rocemu::dma::AddressSpace> memory_of(const Holder& holder) {
  uint64_t value = 0;
  std::memset(&value, rocemu::bench::kFilledWith, sizeof value);
  auto space = rocemu::dma::AddressSpace::probe(holder.pid(), -1,
                                                reinterpret_cast<uint64_t>(holder.at(0)), value);
  if (space == nullptr) throw std::runtime_error("a process of this user cannot be reached");
  return space;
}

struct Program {
  explicit Program(size_t bytes) : holder(bytes, false), memory(memory_of(holder)) {}

  const Holder holder;
  const std::unique_ptr<rocemu::dma::AddressSpace> memory;
};

void flush(rocemu::dma::Batch& batch) {
  std::vector<uint32_t> failed;
  batch.flush(failed);
  if (!failed.empty()) throw std::runtime_error("not all bytes were moved");
}

}  // namespace

int main(int argc, char** argv) try {
  uint32_t threads = 1, qps = 8, programs = 1, run_bytes = 32 * 1024;
  double seconds = 1;
  rocemu::bench::Arguments arguments("What the NIC moves, on several threads");
  arguments.count("--threads", threads, "So many", 16);
  arguments.count("--qps", qps, "With a run each in a turn", 64);
  arguments.count("--programs", programs, "Pairs of programs that have the QPs", 64);
  arguments.count("--run-bytes", run_bytes, "One run", 32 * 1024);
  arguments.seconds(seconds);
  if (const auto code = arguments.parse(argc, argv)) return *code;

  std::deque<Program> from, to;
  for (uint32_t i = 0; i < programs; ++i)
    for (std::deque<Program>* side : {&from, &to}) side->emplace_back(qps * run_bytes);
  std::byte* const buffers = rocemu::bench::make_region(qps * kBufferStride);
  Workers workers(threads);
  const rocemu::dma::SharedMoves shared(&workers);
  rocemu::dma::Batch fetches(rocemu::dma::Direction::from_program);
  rocemu::dma::Batch scatters(rocemu::dma::Direction::to_program);
  const auto add = [&](rocemu::dma::Batch& batch, const std::deque<Program>& side, uint32_t qp) {
    const Program& program = side[qp % programs];
    batch.add(*program.memory,
              reinterpret_cast<uint64_t>(program.holder.at(size_t{qp} * run_bytes)),
              buffers + qp * kBufferStride, run_bytes, 0);
  };
  const auto run = [&](double for_seconds) {
    const auto start = Clock::now();
    for (uint64_t bytes = 0;;) {
      for (uint32_t qp = 0; qp < qps; ++qp) add(fetches, from, qp);
      flush(fetches);
      for (uint32_t qp = 0; qp < qps; ++qp) add(scatters, to, qp);
      flush(scatters);
      bytes += size_t{qps} * run_bytes;
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (elapsed >= for_seconds) return static_cast<double>(bytes) / elapsed;
    }
  };
  run(seconds / 10);
  std::printf("%.3f\n", run(seconds) / 1e9);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "shared_moves: %s\n", error.what());
  return 1;
}
