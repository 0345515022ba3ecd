// stress: processes that load devices with every kind of request over RC, among all of them at
// once, and check every byte, and that each message comes exactly once. Uses the public libibverbs
// interface alone, so it runs on any RDMA devices of one machine. Exits 0 when everything was
// right, 1 with what was wrong and the seed.

#include <getopt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/stress/process.h"
#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"

namespace rocemu::e2e {
namespace {

struct Command {
  StressOptions options;
  std::vector<std::string> devices;
};

constexpr char kUsage[] =
    "stress [options]: processes that send, write, read and change each other's memory over RC, "
    "and check\n"
    "every byte; all pairs of processes in turn, each on the next device\n"
    "      --seed N         what is sent and in which order it is posted (default: random)\n"
    "      --seconds N      so long (default 10)\n"
    "      --processes N    so many (default 4)\n"
    "      --qps N          connections that each of them begins (default 2)\n"
    "      --max-size BYTES of a message (default 100000)\n"
    "      --srq            receives are shared by all QPs of a process\n"
    "  -d, --device NAME    may be repeated (default: all devices there are)\n"
    "  -g, --gid-index N    of all devices (default 1)\n";

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

enum { kSeed = 256, kSeconds, kProcesses, kQps, kMaxSize, kSrq };
constexpr option kKnown[] = {{"seed", required_argument, nullptr, kSeed},
                             {"seconds", required_argument, nullptr, kSeconds},
                             {"processes", required_argument, nullptr, kProcesses},
                             {"qps", required_argument, nullptr, kQps},
                             {"max-size", required_argument, nullptr, kMaxSize},
                             {"srq", no_argument, nullptr, kSrq},
                             {"device", required_argument, nullptr, 'd'},
                             {"gid-index", required_argument, nullptr, 'g'},
                             {"help", no_argument, nullptr, 'h'},
                             {nullptr, 0, nullptr, 0}};

// Throws Failure on a wrong command line. Returns false when only help was asked for.
bool parse(int argc, char** argv, Command& command) {
  StressOptions& options = command.options;
  options.seed = std::random_device{}();
  const auto number32 = [](uint64_t low, uint64_t high) {
    return static_cast<uint32_t>(number(optarg, low, high));
  };
  for (int c; (c = getopt_long(argc, argv, "d:g:h", kKnown, nullptr)) != -1;) {
    switch (c) {
      case 'd':
        command.devices.emplace_back(optarg);
        break;
      case 'g':
        options.gid_index = static_cast<int>(number(optarg, 0, 255));
        break;
      case 'h':
        std::fputs(kUsage, stdout);
        return false;
      case kSeed:
        options.seed = number(optarg, 0, UINT64_MAX);
        break;
      case kSeconds:
        options.seconds = number32(1, 1'000'000);
        break;
      case kProcesses:
        options.processes = number32(1, kMaxProcesses);
        break;
      case kQps:
        options.qps = number32(1, kMaxEnds / 2);
        break;
      case kMaxSize:
        options.max_bytes = number32(8, 1u << 26);
        break;
      case kSrq:
        options.shared_receives = true;
        break;
      default:
        fail("see stress --help");
    }
  }
  if (optind != argc) fail("%s: unexpected; see stress --help", argv[optind]);
  if (end_count(options) > kMaxEnds) fail("there can be at most %u connections", kMaxEnds / 2);
  return true;
}

std::vector<std::string> all_devices() {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
      must(ibv_get_device_list(&count), "ibv_get_device_list"), &ibv_free_device_list);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(ibv_get_device_name(list.get()[i]));
  if (names.empty()) fail("there is no RDMA device");
  return names;
}

// In a child. Others wait for it, so it ends at once when something is wrong.
[[noreturn]] void run_child(const Command& command, Board& board, uint32_t process, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const std::string& device = command.devices[process % command.devices.size()];
  try {
    run_process(command.options, board, process, device);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL process %u on %s: %s (--seed %llu)\n", process, device.c_str(),
                 failure.what(), static_cast<unsigned long long>(command.options.seed));
    _exit(1);
  }
  _exit(0);
}

// Waits for all of them; when one fails the others are killed. Whether all were well.
bool wait_for(const std::vector<pid_t>& children) {
  bool well = true;
  for (size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    const pid_t child = wait(&status);
    if (status == 0 || !well) continue;
    well = false;
    if (WIFSIGNALED(status))
      std::fprintf(stderr, "FAIL process %d ended with signal %d\n", child, WTERMSIG(status));
    for (const pid_t other : children) {
      if (other != child) kill(other, SIGKILL);
    }
  }
  return well;
}

int run(Command& command) {
  const StressOptions& options = command.options;
  const auto seed = static_cast<unsigned long long>(options.seed);
  std::printf("stress: seed %llu, %u processes, %u connections\n", seed, options.processes,
              end_count(options) / 2);
  std::fflush(stdout);
  if (command.devices.empty()) command.devices = all_devices();
  Board* board = Board::make(options.processes);
  std::vector<pid_t> children;
  const pid_t self = getpid();
  for (uint32_t process = 0; process < options.processes; ++process) {
    const pid_t child = fork();
    if (child < 0) fail_errno(errno, "fork");
    if (child == 0) run_child(command, *board, process, self);
    children.push_back(child);
  }
  if (!wait_for(children)) return 1;
  const uint64_t operations = board->counts.operations.load(), bytes = board->counts.bytes.load();
  if (operations == 0) fail("nothing was done");
  std::printf("PASS %llu operations, %llu bytes, every one as it must be\n",
              static_cast<unsigned long long>(operations), static_cast<unsigned long long>(bytes));
  return 0;
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  using rocemu::e2e::Failure;
  rocemu::e2e::Command command;
  try {
    if (!rocemu::e2e::parse(argc, argv, command)) return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "stress: %s\n", failure.what());
    return 2;
  }
  try {
    return rocemu::e2e::run(command);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
    return 1;
  }
}
