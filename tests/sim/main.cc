// Runs many random scenarios of the transport in virtual time, or one again with its packets.
//   sim_scenarios [--scenarios N] [--seed S] [--jobs J] [--trace] [--ladder FILE] [--fail-at S]
// Scenario i of a run has seed S + i. J threads share the scenarios. Ends with 1 at the first
// failure, and draws a picture of it: seed-S.html in the current folder, or the file of --ladder.
// With that it draws a single scenario in any case. --fail-at takes the scenario with that seed for
// one that has failed, for the test of what becomes of those.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "emulator/trace/show/ladder.h"
#include "emulator/trace/show/story.h"
#include "tests/sim/scenario.h"

namespace {

struct Settings {
  uint64_t scenarios = 1;
  uint64_t seed = 1;
  uint64_t jobs = 1;
  bool trace = false;
  std::string ladder;
  std::optional<uint64_t> fail_at;
};

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
// another: `next` is then the number of all.
Sum run_job(std::atomic<uint64_t>& next, const Settings& settings) {
  Sum sum;
  for (uint64_t i = next++; i < settings.scenarios; i = next++) {
    const uint64_t seed = settings.seed + i;
    auto outcome = rocemu::sim_scenarios::run_scenario(seed, settings.trace);
    if (seed == settings.fail_at && outcome.failure.empty())
      outcome.failure = "taken for one that failed (--fail-at)";
    ++sum.scenarios;
    sum.frames += outcome.frames;
    sum.requests += outcome.requests;
    sum.failed_connections += outcome.failed_connection ? 1 : 0;
    if (outcome.failure.empty()) continue;
    sum.failed_seed = seed;
    sum.failure = outcome.failure;
    next = settings.scenarios;
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
               "usage: %s [--scenarios N] [--seed S] [--jobs J] [--trace] [--ladder FILE] "
               "[--fail-at S]\n",
               program);
  return 2;
}

// Nothing: they are not understood.
std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--trace") {
      settings.trace = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const char* const text = argv[++i];
    if (option == "--ladder") {
      settings.ladder = text;
      continue;
    }
    char* end = nullptr;
    const uint64_t value = std::strtoull(text, &end, 0);
    if (end == text || *end != '\0') return std::nullopt;
    if (option == "--scenarios")
      settings.scenarios = value;
    else if (option == "--seed")
      settings.seed = value;
    else if (option == "--jobs")
      settings.jobs = value;
    else if (option == "--fail-at")
      settings.fail_at = value;
    else
      return std::nullopt;
  }
  return settings;
}

// Says which one failed, how to see it again, and where its picture is.
void tell_failure(const Sum& sum, const Settings& settings, const char* program) {
  const std::string seed = std::to_string(sum.failed_seed);
  std::printf("seed %s: %s\nreplay: %s --seed %s --trace\n", seed.c_str(), sum.failure.c_str(),
              program, seed.c_str());
  const std::string ladder = settings.ladder.empty() ? "seed-" + seed + ".html" : settings.ladder;
  if (draw_ladder(sum.failed_seed, ladder)) std::printf("what happened: %s\n", ladder.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Settings> settings = parse(argc, argv);
  if (!settings) return usage(argv[0]);
  std::atomic<uint64_t> next{0};
  std::vector<Sum> sums(std::clamp<uint64_t>(settings->jobs, 1, 64));
  std::vector<std::thread> threads;
  for (Sum& sum : sums) threads.emplace_back([&] { sum = run_job(next, *settings); });
  for (std::thread& thread : threads) thread.join();

  Sum total;
  for (const Sum& sum : sums) {
    total.scenarios += sum.scenarios;
    total.frames += sum.frames;
    total.requests += sum.requests;
    total.failed_connections += sum.failed_connections;
    if (sum.failure.empty()) continue;
    tell_failure(sum, *settings, argv[0]);
    return 1;
  }
  if (settings->scenarios == 1 && !settings->ladder.empty() &&
      !draw_ladder(settings->seed, settings->ladder))
    return 2;
  std::printf("%llu scenarios, %llu requests, %llu frames, %llu with a connection that failed\n",
              static_cast<unsigned long long>(total.scenarios),
              static_cast<unsigned long long>(total.requests),
              static_cast<unsigned long long>(total.frames),
              static_cast<unsigned long long>(total.failed_connections));
  return 0;
}
