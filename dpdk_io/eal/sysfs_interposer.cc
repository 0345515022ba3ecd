#include "dpdk_io/eal/sysfs_interposer.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_build_config.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <string_view>

namespace rocemu::dpdk_io {
namespace {

constexpr char kAnyCpu[] = "/sys/devices/system/cpu";
constexpr char kModules[] = "/sys/module";
constexpr char kSomeDirectory[] = "/";
constexpr std::string_view kCpuPrefix = "/sys/devices/system/cpu/cpu";
constexpr std::string_view kCoreIdSuffix = "/topology/core_id";
constexpr std::string_view kNodePrefix = "/sys/devices/system/node/node";
constexpr std::string_view kNodeCpu = "/cpu";

// What is to be answered; null while nothing is.
struct Answers {
  const cpu_set_t* cpus = nullptr;  // those present, where /sys is missing
  unsigned cpus_end = 0;            // all that the machine has are below
  bool hides_drivers = false;
};
std::atomic<const Answers*> answers{nullptr};
Answers given;

// The number that is all of `text`.
std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of /sys/devices/system/cpu/cpuN/topology/core_id.
std::optional<unsigned> cpu_of_core_id(std::string_view path) {
  if (!path.starts_with(kCpuPrefix) || !path.ends_with(kCoreIdSuffix)) return std::nullopt;
  path.remove_prefix(kCpuPrefix.size());
  if (path.size() < kCoreIdSuffix.size()) return std::nullopt;
  path.remove_suffix(kCoreIdSuffix.size());
  return number(path);
}

// Of /sys/devices/system/node/nodeM/cpuN.
std::optional<unsigned> cpu_of_node(std::string_view path) {
  if (!path.starts_with(kNodePrefix)) return std::nullopt;
  const size_t at = path.find(kNodeCpu, kNodePrefix.size());
  if (at == std::string_view::npos) return std::nullopt;
  return number(path.substr(at + kNodeCpu.size()));
}

// Whether there is such a file; nothing where the file system has to be asked.
std::optional<bool> is_there(std::string_view path) {
  const Answers* const known = answers.load(std::memory_order_acquire);
  if (known == nullptr) return std::nullopt;
  const std::optional<unsigned> core = cpu_of_core_id(path);
  const std::optional<unsigned> cpu = core ? core : cpu_of_node(path);
  if (cpu && *cpu >= known->cpus_end) return false;
  if (core && known->cpus != nullptr && *core < CPU_SETSIZE && CPU_ISSET(*core, known->cpus))
    return true;
  return std::nullopt;
}

unsigned end_of(const cpu_set_t& cpus) {
  unsigned end = static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_CONF), 1L));
  for (unsigned cpu = end; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) end = cpu + 1;
  }
  return end;
}

}  // namespace

SysfsInterposer::SysfsInterposer(const cpu_set_t& cpus, bool loads_drivers) {
  given = {access(kAnyCpu, F_OK) != 0 ? &cpus : nullptr, end_of(cpus), !loads_drivers};
  answers.store(&given, std::memory_order_release);
}

SysfsInterposer::~SysfsInterposer() { answers.store(nullptr); }

}  // namespace rocemu::dpdk_io

extern "C" {

__attribute__((visibility("default"))) int access(const char* path, int mode) noexcept {
  using namespace rocemu::dpdk_io;
  if (const std::optional<bool> there = mode == F_OK ? is_there(path) : std::nullopt) {
    if (!*there) errno = ENOENT;
    return *there ? 0 : -1;
  }
  return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

__attribute__((visibility("default"))) int stat64(const char* path,
                                                  struct stat64* status) noexcept {
  using namespace rocemu::dpdk_io;
  if (const Answers* const known = answers.load(std::memory_order_acquire)) {
    if (known->cpus != nullptr && std::string_view(path) == kModules) path = kSomeDirectory;
    if (known->hides_drivers && std::string_view(path) == RTE_EAL_PMD_PATH) {
      errno = ENOENT;
      return -1;
    }
  }
  return fstatat64(AT_FDCWD, path, status, 0);
}
}
