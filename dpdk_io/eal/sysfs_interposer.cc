#include "dpdk_io/eal/sysfs_interposer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <string_view>

namespace rocemu::dpdk_io {
namespace {

constexpr char kAnyCpu[] = "/sys/devices/system/cpu";
constexpr char kModules[] = "/sys/module";
constexpr char kSomeDirectory[] = "/";
constexpr std::string_view kCpuPrefix = "/sys/devices/system/cpu/cpu";
constexpr std::string_view kCoreIdSuffix = "/topology/core_id";

// Set while /sys is being stood in for.
std::atomic<const cpu_set_t*> present_cpus{nullptr};

bool is_of_present_cpu(std::string_view path, const cpu_set_t& cpus) {
  if (!path.starts_with(kCpuPrefix)) return false;
  path.remove_prefix(kCpuPrefix.size());
  if (!path.ends_with(kCoreIdSuffix)) return false;
  path.remove_suffix(kCoreIdSuffix.size());
  unsigned cpu = 0;
  const char* const path_end = path.data() + path.size();
  const auto [end, error] = std::from_chars(path.data(), path_end, cpu);
  return error == std::errc{} && end == path_end && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &cpus);
}

}  // namespace

SysfsInterposer::SysfsInterposer(const cpu_set_t& cpus) {
  if (access(kAnyCpu, F_OK) != 0) present_cpus.store(&cpus);
}

SysfsInterposer::~SysfsInterposer() { present_cpus.store(nullptr); }

}  // namespace rocemu::dpdk_io

extern "C" {

__attribute__((visibility("default"))) int access(const char* path, int mode) noexcept {
  using namespace rocemu::dpdk_io;
  const cpu_set_t* cpus = present_cpus.load(std::memory_order_relaxed);
  if (cpus != nullptr && mode == F_OK && is_of_present_cpu(path, *cpus)) return 0;
  return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

__attribute__((visibility("default"))) int stat64(const char* path,
                                                  struct stat64* status) noexcept {
  using namespace rocemu::dpdk_io;
  if (present_cpus.load(std::memory_order_relaxed) != nullptr &&
      std::string_view(path) == kModules) {
    path = kSomeDirectory;
  }
  return fstatat64(AT_FDCWD, path, status, 0);
}
}
