// Runs many random scenarios of the transport in virtual time, or one again with its packets.
//   sim_scenarios [--scenarios N] [--seed S] [--trace]
// Scenario i of a run has seed S + i. Ends with 1 at the first failure.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/sim/scenario.h"

namespace {

int usage(const char* program) {
  std::fprintf(stderr, "usage: %s [--scenarios N] [--seed S] [--trace]\n", program);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t scenarios = 1;
  uint64_t seed = 1;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--trace") {
      trace = true;
      continue;
    }
    if (i + 1 == argc || (option != "--scenarios" && option != "--seed")) return usage(argv[0]);
    char* end = nullptr;
    const uint64_t value = std::strtoull(argv[++i], &end, 0);
    if (end == argv[i] || *end != '\0') return usage(argv[0]);
    (option == "--seed" ? seed : scenarios) = value;
  }

  uint64_t frames = 0;
  uint64_t requests = 0;
  uint64_t failed_connections = 0;
  for (uint64_t i = 0; i < scenarios; ++i) {
    const auto outcome = rocemu::sim_scenarios::run_scenario(seed + i, trace);
    frames += outcome.frames;
    requests += outcome.requests;
    failed_connections += outcome.failed_connection ? 1 : 0;
    if (outcome.failure.empty()) continue;
    std::printf("seed %llu: %s\nreplay: %s --seed %llu --trace\n",
                static_cast<unsigned long long>(seed + i), outcome.failure.c_str(), argv[0],
                static_cast<unsigned long long>(seed + i));
    return 1;
  }
  std::printf("%llu scenarios, %llu requests, %llu frames, %llu with a connection that failed\n",
              static_cast<unsigned long long>(scenarios), static_cast<unsigned long long>(requests),
              static_cast<unsigned long long>(frames),
              static_cast<unsigned long long>(failed_connections));
  return 0;
}
