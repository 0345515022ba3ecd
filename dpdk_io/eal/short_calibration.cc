#include "dpdk_io/eal/short_calibration.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace rocemu::dpdk_io {
namespace {

constexpr timespec kLongest{.tv_sec = 0, .tv_nsec = 5'000'000};

std::atomic<bool> sleeps_are_short{false};

bool is_longer(const timespec& time, const timespec& than) {
  return time.tv_sec != than.tv_sec ? time.tv_sec > than.tv_sec : time.tv_nsec > than.tv_nsec;
}

}  // namespace

ShortCalibration::ShortCalibration(bool wanted) { sleeps_are_short.store(wanted); }

ShortCalibration::~ShortCalibration() { sleeps_are_short.store(false); }

}  // namespace rocemu::dpdk_io

extern "C" {

__attribute__((visibility("default"))) int nanosleep(const timespec* asked, timespec* left) {
  using namespace rocemu::dpdk_io;
  if (sleeps_are_short.load(std::memory_order_relaxed) && asked != nullptr &&
      is_longer(*asked, kLongest)) {
    asked = &kLongest;
  }
  return static_cast<int>(syscall(SYS_nanosleep, asked, left));
}
}
