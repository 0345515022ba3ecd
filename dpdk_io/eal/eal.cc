#include "dpdk_io/eal/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "dpdk_io/eal/driver_log.h"
#include "dpdk_io/eal/private_memory.h"
#include "dpdk_io/eal/short_calibration.h"
#include "dpdk_io/eal/sysfs_interposer.h"

namespace rocemu::dpdk_io {
namespace {

// DPDK makes a directory "dpdk" below this one even when it will put nothing there, and in /tmp
// that one, mode 0700, would be in the way of other users' DPDK programs. Below /dev/null it
// cannot, and with --no-shconf or --in-memory it does not mind.
constexpr char kNoRuntimeDirectory[] = "/dev/null";

class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~ScopedEnvironment() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

cpu_set_t current_affinity() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
    throw std::runtime_error(std::string("cannot read this thread's CPU affinity: ") +
                             std::strerror(errno));
  }
  return cpus;
}

// Logical core 0 on all of `cpus`, e.g. "--lcores=0@(0,1,5)".
std::string floating_lcore(const cpu_set_t& cpus) {
  std::string argument = "--lcores=0@(";
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    if (argument.back() != '(') argument += ',';
    argument += std::to_string(cpu);
  }
  return argument + ')';
}

bool has_option(const std::vector<std::string>& arguments,
                std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(arguments, [&](std::string_view argument) {
    return std::ranges::any_of(prefixes, [&](auto prefix) { return argument.starts_with(prefix); });
  });
}

bool names_cores(const EalOptions& options) {
  return has_option(options.extra, {"-c", "-l", "--lcores"});
}

bool sets_log_level(const EalOptions& options) {
  return has_option(options.extra, {"--log-level"});
}

std::vector<std::string> arguments_for(const EalOptions& options, const cpu_set_t& cpus) {
  std::vector<std::string> arguments{"rocemu"};
  if (options.hugepages) {
    arguments.emplace_back("--in-memory");  // no files in hugetlbfs: nothing to clash over
  } else {
    arguments.insert(arguments.end(), {"--no-huge", "--no-shconf"});
  }
  arguments.emplace_back("--no-telemetry");
  if (options.pci_devices.empty()) arguments.emplace_back("--no-pci");
  // Without hugepages nobody knows physical addresses: the IOMMU has to translate.
  if (!options.pci_devices.empty() && !options.hugepages) arguments.emplace_back("--iova-mode=va");
  for (const std::string& device : options.pci_devices)
    arguments.insert(arguments.end(), {"-a", device});
  arguments.insert(arguments.end(), {"-m", std::to_string(options.memory_mb)});
  if (!names_cores(options)) arguments.push_back(floating_lcore(cpus));
  if (!sets_log_level(options)) arguments.emplace_back("--log-level=error");
  arguments.insert(arguments.end(), options.extra.begin(), options.extra.end());
  return arguments;
}

std::string advice(const EalOptions& options, int error) {
  const std::string memory = std::to_string(options.memory_mb) + " MB";
  if (error == ENOTSUP) return "use a CPU with SSE4.2 or later, and devices that DPDK supports";
  if (options.hugepages && (error == ENOMEM || error == EACCES)) {
    return "reserve " + memory +
           " of hugepages (sysctl vm.nr_hugepages), or start without hugepages";
  }
  if (error == ENOMEM) return "ask for less memory than " + memory + ", or raise the memory limit";
  if (!options.extra.empty()) {
    std::string given;
    for (const std::string& argument : options.extra) given += ' ' + argument;
    return "check the additional DPDK options:" + given;
  }
  return "add the DPDK option --log-level=debug to see each step";
}

std::string complaints_in(DriverLog& log) {
  return log.summary({kNoRuntimeDirectory, "assuming core 0", "cannot open sysfs value"});
}

std::atomic<bool> started{false};

}  // namespace

Eal::Eal(const EalOptions& options) {
  if (started.exchange(true)) {
    throw std::runtime_error("DPDK can be started once per process only, and this process has");
  }
  const cpu_set_t cpus = current_affinity();
  std::vector<std::string> arguments = arguments_for(options, cpus);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());

  if (!sets_log_level(options)) log_ = std::make_unique<DriverLog>();
  const bool has_devices = options.loads_drivers || !options.pci_devices.empty();
  int result = 0;
  {
    const ScopedEnvironment runtime_directory("RUNTIME_DIRECTORY", kNoRuntimeDirectory);
    const SysfsInterposer sysfs(cpus, has_devices);
    const ShortCalibration calibration(options.pci_devices.empty());
    const PrivateMemory memory(!has_devices);
    result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  }
  const int error = rte_errno;
  if (!names_cores(options)) sched_setaffinity(0, sizeof cpus, &cpus);
  if (result < 0) {
    std::string message = "DPDK did not start";
    if (error != 0) message += std::string(" (") + std::strerror(error) + ")";
    if (log_) message += ": " + complaints_in(*log_);
    throw std::runtime_error(message + "; what to do: " + advice(options, error));
  }
  if (!has_devices && !options.hugepages) ask_for_large_pages();
  if (log_) {
    log_->show_on_stderr();
    const std::string complaints = complaints_in(*log_);
    if (!complaints.empty()) std::fprintf(stderr, "%s\n", complaints.c_str());
  }
}

Eal::~Eal() { rte_eal_cleanup(); }

}  // namespace rocemu::dpdk_io
