// bad_input: does everything a program can do wrong with RC verbs, row by row, and checks that each
// gets the error the man page or the specification names (errno, completion status, QP state, async
// event). After each row a QP pair that was connected before the first one must still carry
// traffic. Uses the public libibverbs interface alone. Exits 0 when every row passed, 1 otherwise.

#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "tests/e2e/lab.h"

namespace rocemu::e2e {
namespace {

struct Options {
  std::string device_a, device_b, only;
  int gid_index = 1;
};

constexpr char kUsage[] =
    "bad_input [options]: what a program can do wrong, and the error that must follow\n"
    "  -d, --device NAME        first device (default: the first there is)\n"
    "  -D, --peer-device NAME   second device (default: the first one, opened once more)\n"
    "  -g, --gid-index N        of both (default 1)\n"
    "      --only TEXT          only rows whose name contains the text\n";

bool parse(int argc, char** argv, Options& options) {
  enum { kOnly = 256 };
  const option known[] = {{"device", required_argument, nullptr, 'd'},
                          {"peer-device", required_argument, nullptr, 'D'},
                          {"gid-index", required_argument, nullptr, 'g'},
                          {"only", required_argument, nullptr, kOnly},
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

int run(const Options& options) {
  Tally tally;
  try {
    Lab lab(open_device(options.device_a, options.gid_index),
            open_device(options.device_b.empty() ? options.device_a : options.device_b,
                        options.gid_index));
    lab.check_standing_link();
    for (const auto rows :
         {registration_rows(), local_memory_rows(), remote_memory_rows(), receive_rows(),
          queue_rows(), state_rows(), no_answer_rows(), limit_rows(), window_rows()}) {
      for (const Row& row : rows) {
        if (std::strstr(row.name, options.only.c_str()) != nullptr) run_row(lab, row, tally);
      }
    }
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
    return 1;
  }
  if (destroy_failures() != 0) ++tally.failed;
  std::printf("bad_input: %d rows passed, %d failed, %d skipped\n", tally.passed, tally.failed,
              tally.skipped);
  return tally.failed == 0 && tally.passed != 0 ? 0 : 1;
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  rocemu::e2e::Options options;
  if (!rocemu::e2e::parse(argc, argv, options)) {
    std::fputs(rocemu::e2e::kUsage, stderr);
    return 2;
  }
  return rocemu::e2e::run(options);
}
