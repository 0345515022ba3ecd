#include "tests/e2e/tools/row_runner.h"

#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

namespace rocemu::e2e {
namespace {

struct Options {
  std::string device_a, device_b, only, except;
  int gid_index = 1;
};

constexpr char kUsage[] =
    "%s [options]: %s\n"
    "  -d, --device NAME        first device (default: the first there is)\n"
    "  -D, --peer-device NAME   second device (default: the first one, opened once more)\n"
    "  -g, --gid-index N        of both (default 1)\n"
    "      --only TEXT          only rows whose name contains the text\n"
    "      --except TEXT        no rows whose name contains the text\n";

// Whether such a row is among those that are wanted.
bool wants(const Options& options, const std::string& name) {
  return name.find(options.only) != std::string::npos &&
         (options.except.empty() || name.find(options.except) == std::string::npos);
}

bool parse(int argc, char** argv, Options& options) {
  enum { kOnly = 256, kExcept };
  const option known[] = {{"device", required_argument, nullptr, 'd'},
                          {"peer-device", required_argument, nullptr, 'D'},
                          {"gid-index", required_argument, nullptr, 'g'},
                          {"only", required_argument, nullptr, kOnly},
                          {"except", required_argument, nullptr, kExcept},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "d:D:g:", known, nullptr)) != -1;) {
    switch (c) {
      case 'd':
        options.device_a = optarg;
        break;
      case 'D':
        options.device_b = optarg;
        break;
      case 'g':
        options.gid_index = std::atoi(optarg);
        break;
      case kOnly:
        options.only = optarg;
        break;
      case kExcept:
        options.except = optarg;
        break;
      default:
        return false;
    }
  }
  return optind == argc;
}

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
};

void run_row(Lab& lab, const Row& row, Tally& tally) {
  const auto report = [&row](const char* verdict, const char* why) {
    std::printf("%s  %s%s%s\n", verdict, row.name, *why != '\0' ? ": " : "", why);
    std::fflush(stdout);
  };
  const int destroy_failures_before = destroy_failures();
  try {
    row.run(lab);
    if (destroy_failures() != destroy_failures_before) fail("an object could not be destroyed");
    lab.check_no_events();
    report("PASS", "");
    ++tally.passed;
  } catch (const Skipped& skipped) {
    report("SKIP", skipped.what());
    ++tally.skipped;
  } catch (const std::exception& failure) {
    report("FAIL", failure.what());
    ++tally.failed;
  }
  try {
    lab.check_standing_link();
  } catch (const std::exception& failure) {
    // Nothing that follows means anything once the standing pair is broken.
    fail("after this row the device no longer serves another QP pair: %s", failure.what());
  }
}

int run(const Options& options, const char* program,
        std::initializer_list<std::span<const Row>> sets) {
  Tally tally;
  try {
    auto [a, b] = open_devices(options.device_a, options.device_b, options.gid_index);
    Lab lab(std::move(a), std::move(b));
    lab.check_standing_link();
    for (const auto rows : sets) {
      for (const Row& row : rows) {
        if (wants(options, row.name)) run_row(lab, row, tally);
      }
    }
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
    return 1;
  }
  if (destroy_failures() != 0) ++tally.failed;
  std::printf("%s: %d rows passed, %d failed, %d skipped\n", program, tally.passed, tally.failed,
              tally.skipped);
  return tally.failed == 0 && tally.passed != 0 ? 0 : 1;
}

}  // namespace

int run_rows(int argc, char** argv, const char* program, const char* purpose,
             std::initializer_list<std::span<const Row>> sets) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, kUsage, program, purpose);
    return 2;
  }
  return run(options, program, sets);
}

}  // namespace rocemu::e2e
