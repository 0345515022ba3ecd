// Runs many random scenarios of the transport in virtual time, or one again with its packets.
//   sim_scenarios [--scenarios N] [--seed S] [--jobs J] [--trace] [--ladder FILE]
// Scenario i of a run has seed S + i. J threads share the scenarios. Ends with 1 at the first
// failure, of which --ladder draws a picture; of a single scenario it does so in any case.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "emulator/trace/show/ladder.h"
#include "emulator/trace/show/story.h"
#include "tests/sim/scenario.h"

namespace {

// What a job has done, of the scenarios that it took.
struct Sum {
  uint64_t scenarios = 0;
  uint64_t frames = 0;
  uint64_t requests = 0;
  uint64_t failed_connections = 0;
  uint64_t failed_seed = 0;
  std::string failure;
};

// Takes scenarios until there are none, or one fails, of this job or of
// another: `next` is then `end`.
Sum run_job(std::atomic<uint64_t>& next, uint64_t end, uint64_t seed, bool trace) {
  Sum sum;
  for (uint64_t i = next++; i < end; i = next++) {
    const auto outcome = rocemu::sim_scenarios::run_scenario(seed + i, trace);
    ++sum.scenarios;
    sum.frames += outcome.frames;
    sum.requests += outcome.requests;
    sum.failed_connections += outcome.failed_connection ? 1 : 0;
    if (outcome.failure.empty()) continue;
    sum.failed_seed = seed + i;
    sum.failure = outcome.failure;
    next = end;
  }
  return sum;
}

// Runs it once more, and draws it. False when the file can't be written.
bool draw_ladder(uint64_t seed, const std::string& file) {
  rocemu::trace::Trace trace;
  rocemu::sim_scenarios::run_scenario(seed, false, &trace);
  std::ofstream out(file, std::ios::binary);
  rocemu::trace::LadderOptions options;
  options.title = "sim_scenarios --seed " + std::to_string(seed);
  show_ladder(rocemu::trace::tell(trace), options, out);
  out.close();
  if (!out) std::fprintf(stderr, "%s cannot be written\n", file.c_str());
  return static_cast<bool>(out);
}

int usage(const char* program) {
  std::fprintf(stderr,
               "usage: %s [--scenarios N] [--seed S] [--jobs J] [--trace] [--ladder FILE]\n",
               program);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t scenarios = 1;
  uint64_t seed = 1;
  uint64_t jobs = 1;
  bool trace = false;
  std::string ladder;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--trace") {
      trace = true;
      continue;
    }
    if (i + 1 == argc) return usage(argv[0]);
    if (option == "--ladder") {
      ladder = argv[++i];
      continue;
    }
    uint64_t* const wanted = option == "--scenarios" ? &scenarios
                             : option == "--seed"    ? &seed
                             : option == "--jobs"    ? &jobs
                                                     : nullptr;
    if (wanted == nullptr) return usage(argv[0]);
    char* end = nullptr;
    const uint64_t value = std::strtoull(argv[++i], &end, 0);
    if (end == argv[i] || *end != '\0') return usage(argv[0]);
    *wanted = value;
  }

  std::atomic<uint64_t> next{0};
  std::vector<Sum> sums(std::clamp<uint64_t>(jobs, 1, 64));
  std::vector<std::thread> threads;
  for (Sum& sum : sums) threads.emplace_back([&] { sum = run_job(next, scenarios, seed, trace); });
  for (std::thread& thread : threads) thread.join();

  Sum total;
  for (const Sum& sum : sums) {
    total.scenarios += sum.scenarios;
    total.frames += sum.frames;
    total.requests += sum.requests;
    total.failed_connections += sum.failed_connections;
    if (sum.failure.empty()) continue;
    const auto failed_seed = static_cast<unsigned long long>(sum.failed_seed);
    std::printf("seed %llu: %s\nreplay: %s --seed %llu --trace\n", failed_seed, sum.failure.c_str(),
                argv[0], failed_seed);
    if (!ladder.empty() && draw_ladder(sum.failed_seed, ladder))
      std::printf("what happened: %s\n", ladder.c_str());
    return 1;
  }
  if (scenarios == 1 && !ladder.empty() && !draw_ladder(seed, ladder)) return 2;
  std::printf("%llu scenarios, %llu requests, %llu frames, %llu with a connection that failed\n",
              static_cast<unsigned long long>(total.scenarios),
              static_cast<unsigned long long>(total.requests),
              static_cast<unsigned long long>(total.frames),
              static_cast<unsigned long long>(total.failed_connections));
  return 0;
}
