// DPDK starts once per process, so every start that is looked at happens in a process of its own:
// this program again, running one of the cases tagged [.start].
#include "dpdk_io/eal/eal.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "dpdk_io/eal/short_calibration.h"
#include "dpdk_io/ethdev/ethernet_device.h"
#include "dpdk_io/port/frame_pool.h"
#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {
namespace {

constexpr int kCannotPrepare = 77;
constexpr char kSharedMemory[] = "/memfd:nohuge";
constexpr char kNetworkDriver[] = "librte_net_";  // those that this program is not linked with

// Runs the case `name` of this program with an empty environment, after `prepare`, and returns its
// exit status: 0 when it passed, kCannotPrepare when `prepare` said false.
template <typename Prepare>
int run_case(const char* name, Prepare prepare) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!prepare()) _exit(kCannotPrepare);
      // A name that is none, as one with a comma in it, fails instead of running nothing.
#if CATCH_VERSION_MAJOR < 3  // newer ones do of themselves
    const char* argv[] = {"dpdk_io_test", name, "--warn", "NoTests", nullptr};
#else
    const char* argv[] = {"dpdk_io_test", name, nullptr};
#endif
    const char* environment[] = {nullptr};
    execve("/proc/self/exe", const_cast<char**>(argv), const_cast<char**>(environment));
    _exit(errno);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_case(const char* name) {
  return run_case(name, [] { return true; });
}

std::string contents_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool hide(const char* directory) {
  return mount("none", directory, "tmpfs", MS_RDONLY, nullptr) == 0;
}

// A user without privileges, without /sys, and with nowhere to write.
bool enter_bare_sandbox() {
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && hide("/sys") &&
         hide("/tmp") && hide("/run");
}

std::string failure_of(const EalOptions& options) {
  try {
    const Eal eal(options);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("start: affinity and environment stay as they were", "[.start]") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  for (int cpu = CPU_SETSIZE - 1; CPU_COUNT(&before) > 1; --cpu) CPU_CLR(cpu, &before);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);

  const Eal eal(EalOptions{});

  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
  CHECK(std::getenv("RUNTIME_DIRECTORY") == nullptr);
  FramePool pool("start", 64, 4210);
  CHECK(pool.available() == 64);
}

TEST_CASE("start: a second Eal is refused and says so", "[.start]") {
  { const Eal eal(EalOptions{}); }
  CHECK_THAT(failure_of(EalOptions{}), Catch::Contains("once per process"));
}

// An option that is not known at all ends the process within DPDK from 25.11 on.
TEST_CASE("start: an option that DPDK refuses is named in the message", "[.start]") {
  const std::string message = failure_of(EalOptions{.extra = {"--proc-type=neither"}});
  CHECK_THAT(message, Catch::Contains("DPDK did not start"));
  CHECK_THAT(message, Catch::Contains("--proc-type=neither"));
}

TEST_CASE("start: a driver that is missing is named in the message", "[.start]") {
  const std::string message = failure_of(EalOptions{.extra = {"-d", "no-such-driver.so"}});
  CHECK_THAT(message, Catch::Contains("no-such-driver.so: cannot open shared object file"));
}

TEST_CASE("start: a NIC on the PCI bus that is not there is missed when it is wanted", "[.start]") {
  const Eal eal(EalOptions{.pci_devices = {"0000:ff:1f.7"}});
  FramePool pool("start", 64, 4210);
  CHECK_THROWS_WITH(
      EthernetDevice({EthernetDeviceRequest::Bus::pci, "0000:ff:1f.7", 0, {2, 0, 0, 0, 0, 1}}),
      Catch::Contains("no driver of DPDK has taken this NIC"));
}

TEST_CASE("start: without drivers and shared memory where no device wants them", "[.start]") {
  const Eal eal(EalOptions{.loads_drivers = false});
  const std::string mapped = contents_of("/proc/self/maps");
  CHECK_THAT(mapped, Catch::Contains("librte_eal") && !Catch::Contains(kNetworkDriver));
  CHECK_THAT(mapped, !Catch::Contains(kSharedMemory));
  FramePool pool("start", 64, 4210);
  pool.leave_memory();
  CHECK(pool.available() == 64);
}

TEST_CASE("start: with drivers and memory that a device can share", "[.start]") {
  const Eal eal(EalOptions{});
  const std::string mapped = contents_of("/proc/self/maps");
  CHECK_THAT(mapped, Catch::Contains(kNetworkDriver));
  CHECK_THAT(mapped, Catch::Contains(kSharedMemory));
}

TEST_CASE("an Eal loads drivers and has shared memory where a device may want them, alone") {
  CHECK(run_case("start: without drivers and shared memory where no device wants them") == 0);
  CHECK(run_case("start: with drivers and memory that a device can share") == 0);
}

TEST_CASE("an Eal starts without HOME or any other environment variable") {
  CHECK(run_case("start: affinity and environment stay as they were") == 0);
}

TEST_CASE("a second process starts while the first one runs") {
  need_eal();
  CHECK(run_case("start: affinity and environment stay as they were") == 0);
}

TEST_CASE("an Eal starts with the PCI bus, without hugepages") {
  CHECK(run_case("start: a NIC on the PCI bus that is not there is missed when it is wanted") == 0);
}

TEST_CASE("an Eal starts without privileges, /sys or a place to write") {
  const int status =
      run_case("start: affinity and environment stay as they were", enter_bare_sandbox);
  if (status == kCannotPrepare) {
    WARN("this kernel lets us make no user namespace: not checked");
    return;
  }
  CHECK(status == 0);
}

TEST_CASE("an Eal that cannot start says what is wrong") {
  CHECK(run_case("start: a second Eal is refused and says so") == 0);
  CHECK(run_case("start: an option that DPDK refuses is named in the message") == 0);
  CHECK(run_case("start: a driver that is missing is named in the message") == 0);
}

TEST_CASE(
    "DPDK's measurement of the processor does not delay a start, and sleeps are whole later") {
  using std::chrono::steady_clock;
  const timespec long_time{.tv_sec = 60, .tv_nsec = 0};
  const auto begun = steady_clock::now();
  {
    const ShortCalibration calibration(true);
    CHECK(nanosleep(&long_time, nullptr) == 0);
  }
  CHECK(steady_clock::now() - begun < std::chrono::seconds(30));

  const timespec time{.tv_sec = 0, .tv_nsec = 30'000'000};
  const auto later = steady_clock::now();
  CHECK(nanosleep(&time, nullptr) == 0);
  CHECK(steady_clock::now() - later >= std::chrono::milliseconds(30));
}

}  // namespace rocemu::dpdk_io
