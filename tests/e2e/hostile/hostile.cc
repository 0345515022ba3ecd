// hostile: an honest pair beside a program that means harm.
//
//   hostile KIND SECONDS [--bounds]
//
// The pair moves bulk and measures round trips, for half of SECONDS by itself, for SECONDS beside
// the hostile program, and once more after that has gone. None of its WRITEs may fail or take ten
// seconds, an honest program can make what it needs, and the NIC may grow by 512 MiB, whatever else
// the machine does.
// What depends on the machine is asked for by --bounds: the pair keeps half of the bandwidth that
// it has beside a program that does nothing but use a processor, and its worst round trip is 50 ms,
// or four times what the machine shows without the hostile program. Exits 77 when this user cannot
// do what the kind asks for.
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

constexpr int kSkipped = 77;
constexpr double kWorstRoundTripS = 0.05;
// As long as this nothing waits for its turn, on any machine: it hangs.
constexpr double kHangS = 10;
constexpr size_t kGrowthBytes = size_t{512} << 20;

struct Figures {
  double bytes_per_second = 0;
  double worst_round_trip_s = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class HonestPair {
 public:
  Figures run(double seconds) {
    Figures figures;
    const auto begun = Clock::now();
    uint64_t bytes = 0;
    for (unsigned i = 0; i < kDepth; ++i) write(bulk_, kBulkBytes);
    for (auto asked = ask(); seconds_since(begun) < seconds;) {
      if (take(bulk_)) {
        bytes += kBulkBytes;
        write(bulk_, kBulkBytes);
      }
      figures.worst_round_trip_s = std::max(figures.worst_round_trip_s, seconds_since(asked));
      if (take(small_)) asked = ask();
    }
    figures.bytes_per_second = static_cast<double>(bytes) / seconds_since(begun);
    for (unsigned i = 0; i < kDepth; ++i) wait(bulk_);
    wait(small_);
    make_something();
    return figures;
  }

 private:
  static constexpr unsigned kDepth = 8;

  // There has to be room for honest programs in all that programs share.
  void make_something() const {
    const Device another = open_device("rocemu0", 1);
    const ChannelPtr channel(
        must(ibv_create_comp_channel(another.context.get()), "ibv_create_comp_channel"));
    const Link link = lab_.make_link();
    const MwPtr window(must(ibv_alloc_mw(another.pd.get(), IBV_MW_TYPE_2), "ibv_alloc_mw"));
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.grh.dgid = lab_.b().gid;
    attr.grh.sgid_index = another.gid_index;
    attr.port_num = kPort;
    const AhPtr address(must(ibv_create_ah(another.pd.get(), &attr), "ibv_create_ah"));
    rdma_event_channel* const cm = must(rdma_create_event_channel(), "rdma_create_event_channel");
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(cm, &id, nullptr, RDMA_PS_TCP) != 0) fail_errno(errno, "rdma_create_id");
    rdma_destroy_id(id);
    rdma_destroy_event_channel(cm);
  }

  static constexpr uint32_t kBulkBytes = 32768;

  static void write(Link& link, uint32_t bytes) {
    SendRequest request(IBV_WR_RDMA_WRITE, 1, link.a.sge(0, bytes));
    request.remote(link.b.memory.address(), link.b.mr->rkey);
    post_ok(link.a.qp.get(), request);
  }
  Clock::time_point ask() {
    const auto now = Clock::now();
    write(small_, 8);
    return now;
  }
  static void check(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) fail("the honest pair's %s", wc_text(wc).c_str());
  }
  static bool take(Link& link) {
    ibv_wc wc;
    if (ibv_poll_cq(link.a.send_cq.get(), 1, &wc) == 0) return false;
    check(wc);
    return true;
  }
  static void wait(Link& link) {
    const auto wc = poll_one(link.a.send_cq.get(), std::chrono::seconds(30));
    if (!wc) fail("the honest pair's last WRITEs do not complete");
    check(*wc);
  }

  static LinkOptions patient() {
    LinkOptions options;
    options.rc.timeout = 20;
    return options;
  }

  Lab lab_{open_device("rocemu0", 1), open_device("rocemu1", 1)};
  Link bulk_ = lab_.make_link(patient());
  Link small_ = lab_.make_link(patient());
};

// The process that listens on the NIC's socket.
pid_t nic_pid() {
  const char* const dir = std::getenv("ROCEMU_DIR");
  if (dir == nullptr) fail("ROCEMU_DIR is not set: run this by `rocemu run`");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/nic.sock", dir);
  const int nic = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::connect(nic, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::getsockopt(nic, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    fail_errno(errno, "the NIC's socket");
  ::close(nic);
  return peer.pid;
}

size_t resident_bytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

const Deed* find_deed(const char* name) {
  for (const auto deeds : {descriptor_deeds(), memory_deeds(), object_deeds(), table_deeds()})
    for (const Deed& deed : deeds)
      if (std::strcmp(deed.name, name) == 0) return &deed;
  return nullptr;
}

// A process that does the deed when it is told to. It begins before this one opens a device, so
// that it is a program like any other.
class Hostile {
 public:
  explicit Hostile(const Deed& deed) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno(errno, "pipe2");
    pid_ = ::fork();
    if (pid_ == 0) wait_and_do(deed, ends[0]);
    ::setpgid(pid_, pid_);
    ::close(ends[0]);
    go_ = ends[1];
  }
  void begin() const {
    if (::write(go_, "", 1) != 1) fail_errno(errno, "write");
  }
  // Kills it and those that it has left behind; false when it had failed at what it was to do.
  bool stop() const {
    int status = 0;
    const bool ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
    ::kill(-pid_, SIGKILL);
    if (!ended) ::waitpid(pid_, &status, 0);
    return WIFSIGNALED(status);
  }

 private:
  [[noreturn]] static void wait_and_do(const Deed& deed, int go) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte;
    if (::read(go, &byte, 1) != 1) ::_exit(1);
    try {
      deed.run("rocemu0");
    } catch (const std::exception& error) {
      std::fprintf(stderr, "hostile: %s: %s\n", deed.name, error.what());
    }
    ::_exit(1);
  }

  pid_t pid_;
  int go_;
};

void print(const char* when, const Figures& figures, size_t resident) {
  std::printf("%-8s %8.1f MB/s, worst round trip %8.3f ms, NIC %zu MiB\n", when,
              figures.bytes_per_second / 1e6, figures.worst_round_trip_s * 1e3, resident >> 20);
}

void burn(const std::string&) {
  for (;;) std::atomic_signal_fence(std::memory_order_seq_cst);
}

constexpr Deed kBurn{"processor", nothing_missing, burn};

struct Course {
  Figures alone, beside_burner, beside, after;
};

void check_bounds(const Deed& deed, const Course& course) {
  const auto& [alone, beside_burner, beside, after] = course;
  const double worst = std::max(kWorstRoundTripS, 4 * alone.worst_round_trip_s) + deed.waits_s;
  if (beside.worst_round_trip_s > worst)
    fail("a round trip took %.1f ms, may be %.1f", beside.worst_round_trip_s * 1e3, worst * 1e3);
  // What the machine itself has lost meanwhile is nobody's fault.
  const double usual = std::min(alone.bytes_per_second, after.bytes_per_second);
  const double fair = std::min(usual, beside_burner.bytes_per_second);
  if (deed.waits_s == 0 && beside.bytes_per_second < fair / 2)
    fail("less than half of the bandwidth was left");
  if (after.bytes_per_second < usual / 2) fail("the bandwidth did not come back");
}

void run(const Deed& deed, double seconds, bool bounds) {
  const Hostile burner(kBurn);
  const Hostile hostile(deed);
  HonestPair pair;
  const pid_t nic = nic_pid();
  pair.run(0.2);
  Course course;
  course.alone = pair.run(seconds / 2);
  print("alone", course.alone, resident_bytes(nic));
  if (bounds) {
    burner.begin();
    course.beside_burner = pair.run(seconds / 2);
    print("burner", course.beside_burner, resident_bytes(nic));
  }
  burner.stop();
  const size_t before = resident_bytes(nic);
  hostile.begin();
  course.beside = pair.run(seconds + deed.waits_s);
  const size_t during = resident_bytes(nic);
  print("beside", course.beside, during);
  if (!hostile.stop()) fail("the hostile program could not do what it wanted");
  course.after = pair.run(seconds / 2);
  print("after", course.after, resident_bytes(nic));
  if (during > before + kGrowthBytes) fail("the NIC's memory grew too much");
  for (const Figures& figures : {course.beside, course.after})
    if (figures.bytes_per_second == 0 || figures.worst_round_trip_s > kHangS)
      fail("the honest pair stood still");
  if (bounds) check_bounds(deed, course);
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  using namespace rocemu::e2e;
  const bool bounds = argc == 4 && std::strcmp(argv[3], "--bounds") == 0;
  const Deed* const deed = argc == 3 || bounds ? find_deed(argv[1]) : nullptr;
  if (deed == nullptr) {
    std::fprintf(stderr, "usage: hostile KIND SECONDS [--bounds]\n");
    return 2;
  }
  if (const std::string missing = deed->missing(); !missing.empty()) {
    std::printf("SKIPPED: %s: %s\n", deed->name, missing.c_str());
    return kSkipped;
  }
  try {
    run(*deed, std::atof(argv[2]), bounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hostile: %s: %s\n", deed->name, error.what());
    return 1;
  }
  std::printf("%s: the honest pair was not harmed\n", deed->name);
  return 0;
}
