// shared_path: some processes, each with some RC connections between two devices, that all WRITE
// messages of random sizes in both directions for some seconds. It prints what each connection
// moved, and ends with 1 when one failed, moved too little (--least) or less than a fair share
// (--fair). Uses libibverbs alone.

#include <getopt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include "tests/e2e/tools/failure.h"
#include "tests/e2e/tools/verbs_objects.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kInFlight = 16;  // messages of a connection and direction
constexpr std::chrono::seconds kPatience{20};

struct Options {
  std::string device_a = "rocemu0", device_b = "rocemu1";
  int gid_index = 1;
  unsigned processes = 4;
  unsigned connections = 4;  // of a process
  unsigned seconds = 10;
  uint32_t max_bytes = 100'000;
  int mtu_bytes = 4096;
  unsigned timeout = 14;
  double least_mbit_per_s = 0;  // of all together
  double fair = 0;              // Jain's index of the connections' directions
};

[[noreturn]] void explain() {
  std::puts(
      "shared_path [options]: RC connections of several processes between two devices\n"
      "  -d, -D NAME      the devices (rocemu0, rocemu1)\n"
      "  -g N             GID index of both (1)\n"
      "  -p N             processes (4)\n"
      "  -q N             connections of each, with traffic both ways (4)\n"
      "  -t SECONDS       how long (10)\n"
      "  -s BYTES         the longest message (100000)\n"
      "  -m BYTES         path MTU (4096)\n"
      "  -T CODE          ACK timeout (14)\n"
      "  --least MBIT     fails below this sum of all\n"
      "  --fair INDEX     fails below this value of Jain's index");
  std::exit(2);
}

Options parse(int argc, char** argv) {
  enum { kMin = 256, kFair };
  const option known[] = {{"least", required_argument, nullptr, kMin},
                          {"fair", required_argument, nullptr, kFair},
                          {nullptr, 0, nullptr, 0}};
  Options options;
  for (int c; (c = getopt_long(argc, argv, "d:D:g:p:q:t:s:m:T:", known, nullptr)) != -1;) {
    const auto number = [] { return static_cast<unsigned>(std::strtoul(optarg, nullptr, 10)); };
    switch (c) {
      case 'd':
        options.device_a = optarg;
        break;
      case 'D':
        options.device_b = optarg;
        break;
      case 'g':
        options.gid_index = static_cast<int>(number());
        break;
      case 'p':
        options.processes = number();
        break;
      case 'q':
        options.connections = number();
        break;
      case 't':
        options.seconds = number();
        break;
      case 's':
        options.max_bytes = number();
        break;
      case 'm':
        options.mtu_bytes = static_cast<int>(number());
        break;
      case 'T':
        options.timeout = number();
        break;
      case kMin:
        options.least_mbit_per_s = std::strtod(optarg, nullptr);
        break;
      case kFair:
        options.fair = std::strtod(optarg, nullptr);
        break;
      default:
        explain();
    }
  }
  return options;
}

ibv_mtu mtu_code(int bytes) {
  int code = IBV_MTU_256;
  for (int mtu = 256; mtu < bytes; mtu *= 2) ++code;
  return static_cast<ibv_mtu>(code);
}

// One end of a connection, and what it sends.
struct End {
  QpPtr qp;
  MrPtr mr;
  uint32_t remote_key = 0;
  uint64_t posted = 0, completed = 0;
  std::vector<uint32_t> sizes = std::vector<uint32_t>(kInFlight);  // of what is in flight
};

// One process' share: its connections, whose ends all report to one CQ for each device.
class Load {
 public:
  Load(const Options& options, unsigned number, std::span<uint64_t> moved)
      : options_(options),
        moved_(moved),
        random_(number),
        devices_(open_devices(options.device_a, options.device_b, options.gid_index)),
        memory_(options.max_bytes) {
    for (Device* device : {&devices_.first, &devices_.second})
      cqs_.emplace_back(must(
          ibv_create_cq(device->context.get(), static_cast<int>(options.connections * kInFlight),
                        nullptr, nullptr, 0),
          "ibv_create_cq"));
    for (unsigned i = 0; i < options.connections; ++i) connect();
  }

  void run() {
    const auto until = Clock::now() + std::chrono::seconds(options_.seconds);
    while (Clock::now() < until) {
      for (End& end : ends_) {
        while (end.posted - end.completed < kInFlight) post(end);
      }
      poll(true);
    }
    const auto patience_ends = Clock::now() + kPatience;
    while (in_flight() > 0) {
      if (Clock::now() > patience_ends)
        fail("%u messages were not completed in %d s", in_flight(),
             static_cast<int>(kPatience.count()));
      poll(false);
    }
  }

 private:
  void connect() {
    RcOptions rc;
    rc.path_mtu = mtu_code(options_.mtu_bytes);
    rc.timeout = static_cast<uint8_t>(options_.timeout);
    const size_t first = ends_.size();
    for (int side = 0; side < 2; ++side) {
      const Device& device = side == 0 ? devices_.first : devices_.second;
      End end;
      end.mr = register_memory(device.pd.get(), memory_.data(), memory_.bytes(),
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
      must(end.mr.get(), "ibv_reg_mr");
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cqs_[static_cast<size_t>(side)].get();
      init.qp_type = IBV_QPT_RC;
      init.cap = {kInFlight, 1, 1, 1, 0};
      end.qp.reset(must(ibv_create_qp(device.pd.get(), &init), "ibv_create_qp"));
      ends_.push_back(std::move(end));
    }
    End& a = ends_[first];
    End& b = ends_[first + 1];
    a.remote_key = b.mr->rkey;
    b.remote_key = a.mr->rkey;
    connect_pair(a.qp.get(), devices_.first, b.qp.get(), devices_.second, rc);
  }

  void post(End& end) {
    const auto index = static_cast<size_t>(&end - ends_.data());
    uint32_t& size = end.sizes[end.posted % kInFlight];
    size = std::uniform_int_distribution<uint32_t>(1, options_.max_bytes)(random_);
    ibv_sge sge{memory_.address(), size, end.mr->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = index;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma = {memory_.address(), end.remote_key};
    must(ibv_post_send(end.qp.get(), &wr, &bad), "ibv_post_send");
    ++end.posted;
  }

  // `counts`: within the measured time.
  void poll(bool counts) {
    ibv_wc completions[32];
    for (const CqPtr& cq : cqs_) {
      const int count = ibv_poll_cq(cq.get(), 32, completions);
      if (count < 0) fail("ibv_poll_cq: %d", count);
      for (const ibv_wc& wc : std::span(completions, static_cast<size_t>(count))) {
        End& end = ends_[wc.wr_id];
        if (wc.status != IBV_WC_SUCCESS)
          fail("message %llu of an end: %s", static_cast<unsigned long long>(end.completed),
               ibv_wc_status_str(wc.status));
        if (counts) moved_[wc.wr_id] += end.sizes[end.completed % kInFlight];
        ++end.completed;
      }
    }
  }

  unsigned in_flight() const {
    uint64_t count = 0;
    for (const End& end : ends_) count += end.posted - end.completed;
    return static_cast<unsigned>(count);
  }

  const Options& options_;
  std::span<uint64_t> moved_;
  std::mt19937 random_;
  std::pair<Device, Device> devices_;
  Memory memory_;
  std::vector<CqPtr> cqs_;
  std::vector<End> ends_;
};

// Jain's index: 1 when all moved the same, 1/n when one moved all.
double fairness(std::span<const uint64_t> moved) {
  double sum = 0, squares = 0;
  for (const uint64_t bytes : moved) {
    const auto value = static_cast<double>(bytes);
    sum += value;
    squares += value * value;
  }
  return squares == 0 ? 0 : sum * sum / (squares * static_cast<double>(moved.size()));
}

int run(const Options& options) {
  const size_t each = size_t{2} * options.connections;
  const size_t count = each * options.processes;
  void* const shared = mmap(nullptr, count * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_errno(errno, "mmap");
  const std::span<uint64_t> moved(static_cast<uint64_t*>(shared), count);
  std::vector<pid_t> children;
  for (unsigned i = 0; i < options.processes; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        Load(options, i + 1, moved.subspan(i * each, each)).run();
        _exit(0);
      } catch (const Failure& failure) {
        std::fprintf(stderr, "process %u: %s\n", i, failure.what());
        _exit(1);
      }
    }
    children.push_back(child);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    well = well && status == 0;
  }
  uint64_t sum = 0, least = ~uint64_t{0};
  for (const uint64_t bytes : moved) {
    sum += bytes;
    least = std::min(least, bytes);
  }
  const double rate = 8e-6 * static_cast<double>(sum) / options.seconds;
  std::printf(
      "%.1f MB, %.0f Mbit/s in both directions, fairness %.3f, the slowest direction of a "
      "connection %.2f MB\n",
      1e-6 * static_cast<double>(sum), rate, fairness(moved), 1e-6 * static_cast<double>(least));
  if (rate < options.least_mbit_per_s) fail("less than %.0f Mbit/s", options.least_mbit_per_s);
  if (fairness(moved) < options.fair) fail("fairness below %.2f", options.fair);
  return well ? 0 : 1;
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  try {
    return rocemu::e2e::run(rocemu::e2e::parse(argc, argv));
  } catch (const rocemu::e2e::Failure& failure) {
    std::printf("FAIL %s\n", failure.what());
    return 1;
  }
}
