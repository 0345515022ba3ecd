// verify_bytes: sends random messages of every operation over RC between two devices (or one device
// opened twice) and checks every byte, guard bytes around each target included, and every
// completion. Uses the public libibverbs interface alone, so it runs on any RDMA device. Exits 0
// when everything was right, 1 with the first thing that was wrong and the seed that repeats the
// run.

#include <getopt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/bytes/round.h"
#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kMaxMessageBytes = 1u << 30;
constexpr uint64_t kRoundsBetweenArenaChecks = 8;

struct Options {
  std::string device_a, device_b;
  int gid_index = 1;
  uint64_t seed = std::random_device{}();
  uint64_t messages = 10000;
  uint32_t max_bytes = 8u << 20;
  uint64_t budget_bytes = 512ull << 20;
  std::vector<std::string> operations;
  bool verbose = false;
};

constexpr char kUsage[] =
    "verify_bytes [options]: checks every byte of random RC messages between two devices\n"
    "  -d, --device NAME        first device (default: the first there is)\n"
    "  -D, --peer-device NAME   second device (default: the first one, opened once more)\n"
    "  -g, --gid-index N        of both (default 1)\n"
    "      --messages N         for each operation (default 10000)\n"
    "      --max-size BYTES     of a message (default 8388608)\n"
    "      --budget-mib N       payload for each operation, about (default 512)\n"
    "      --operation NAME     SEND, SEND_WITH_IMM, WRITE, WRITE_WITH_IMM, READ or MIXED;\n"
    "                           may be repeated (default: all of them)\n"
    "      --seed N             repeats a run (default: random)\n"
    "  -v, --verbose            prints each round\n";

uint64_t number(const char* text, uint64_t low, uint64_t high) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 0);
  if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high) {
    fail("%s: not a number from %llu to %llu", text, static_cast<unsigned long long>(low),
         static_cast<unsigned long long>(high));
  }
  return value;
}

// Throws Failure on a wrong command line. Returns false when only help was asked for.
bool parse(int argc, char** argv, Options& options) {
  enum { kMessages = 256, kMaxSize, kBudget, kOperation, kSeed };
  const option known[] = {{"device", required_argument, nullptr, 'd'},
                          {"peer-device", required_argument, nullptr, 'D'},
                          {"gid-index", required_argument, nullptr, 'g'},
                          {"messages", required_argument, nullptr, kMessages},
                          {"max-size", required_argument, nullptr, kMaxSize},
                          {"budget-mib", required_argument, nullptr, kBudget},
                          {"operation", required_argument, nullptr, kOperation},
                          {"seed", required_argument, nullptr, kSeed},
                          {"verbose", no_argument, nullptr, 'v'},
                          {"help", no_argument, nullptr, 'h'},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "d:D:g:vh", known, nullptr)) != -1;) {
    switch (c) {
      case 'd':
        options.device_a = optarg;
        break;
      case 'D':
        options.device_b = optarg;
        break;
      case 'g':
        options.gid_index = static_cast<int>(number(optarg, 0, 255));
        break;
      case 'v':
        options.verbose = true;
        break;
      case 'h':
        std::fputs(kUsage, stdout);
        return false;
      case kMessages:
        options.messages = number(optarg, 1, 1'000'000'000);
        break;
      case kMaxSize:
        options.max_bytes = static_cast<uint32_t>(number(optarg, 0, kMaxMessageBytes));
        break;
      case kBudget:
        options.budget_bytes = number(optarg, 0, 1u << 30) << 20;
        break;
      case kOperation:
        options.operations.emplace_back(optarg);
        break;
      case kSeed:
        options.seed = number(optarg, 0, UINT64_MAX);
        break;
      default:
        fail("see verify_bytes --help");
    }
  }
  if (optind != argc) fail("%s: unexpected; see verify_bytes --help", argv[optind]);
  return true;
}

// A part of the run: one operation, or all of them mixed on the same QPs.
struct Part {
  std::string name;
  std::vector<const Operation*> operations;
};

std::vector<Part> parts(const Options& options) {
  std::vector<Part> all;
  Part mixed{"MIXED", {}};
  for (const Operation& operation : all_operations()) {
    all.push_back({operation.name, {&operation}});
    mixed.operations.push_back(&operation);
  }
  all.push_back(mixed);
  if (options.operations.empty()) return all;
  std::vector<Part> chosen;
  for (const std::string& name : options.operations) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Part& part) { return part.name == name; });
    if (found == all.end()) fail("%s: no such operation", name.c_str());
    chosen.push_back(*found);
  }
  return chosen;
}

double mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

uint64_t run_part(Bench& bench, const Part& part, const Options& options) {
  SizePlan sizes(options.messages, options.max_bytes, options.budget_bytes);
  const auto start = Clock::now();
  // The part's place in the list plays no role, so that --operation repeats it alone.
  uint64_t part_seed = options.seed;
  for (const char c : part.name) part_seed = mix64(part_seed ^ static_cast<unsigned char>(c));
  Random random(part_seed);
  uint64_t done = 0, rounds = 0, verified = 0;
  while (done < options.messages) {
    const uint64_t messages = std::min(options.messages - done, random.between(20, 500));
    verified += run_round(bench, part.operations, messages, sizes, random, options.verbose);
    done += messages;
    if (++rounds % kRoundsBetweenArenaChecks == 0) bench.check_arenas();
  }
  bench.check_arenas();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("%-15s %llu messages on %llu QP pairs, %.1f MiB verified in %.1f s\n",
              part.name.c_str(), static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(rounds), mebibytes(verified), seconds);
  std::fflush(stdout);
  return verified;
}

int run(const Options& options) {
  std::printf("verify_bytes: seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  uint64_t verified = 0;
  try {
    const std::vector<Part> chosen = parts(options);
    Random random(options.seed);
    auto [a, b] = open_devices(options.device_a, options.device_b, options.gid_index);
    Bench bench = make_bench(std::move(a), std::move(b), options.max_bytes, random);
    for (const Part& part : chosen) {
      try {
        verified += run_part(bench, part, options);
      } catch (const Failure& failure) {
        fail("in part %s: %s", part.name.c_str(), failure.what());
      }
    }
  } catch (const Failure& failure) {
    std::fprintf(stderr, "FAIL %s (repeat with --seed %llu)\n", failure.what(),
                 static_cast<unsigned long long>(options.seed));
    return 1;
  }
  if (destroy_failures() != 0) {
    std::fprintf(stderr, "FAIL %d verbs objects could not be destroyed\n", destroy_failures());
    return 1;
  }
  std::printf("PASS %.1f MiB verified, every byte as it must be\n", mebibytes(verified));
  return 0;
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  rocemu::e2e::Options options;
  try {
    if (!rocemu::e2e::parse(argc, argv, options)) return 0;
  } catch (const rocemu::e2e::Failure& failure) {
    std::fprintf(stderr, "verify_bytes: %s\n", failure.what());
    return 2;
  }
  return rocemu::e2e::run(options);
}
