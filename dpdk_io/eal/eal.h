// Brings DPDK's environment abstraction layer (EAL) up and down, once per process, with settings
// that suit an ordinary user: no hugepages, no devices that are not asked for, no files shared with
// other DPDK processes, threads that float over the CPUs the caller may use.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace rocemu::dpdk_io {

class DriverLog;

struct EalOptions {
  unsigned memory_mb = 192;  // address space; pages count once they are touched
  std::vector<std::string>
      extra{};  // appended as they are, e.g. "--vdev=net_af_packet0,iface=eth0"
  bool hugepages = false;
  bool loads_drivers = true;  // of DPDK's folder of drivers, for devices other than on the PCI bus
  // Addresses, each with ",key=value" for its driver's arguments; nothing else on the PCI bus is
  // looked at.
  std::vector<std::string> pci_devices{};
};

// Construct before the process has other threads: for the length of the constructor an environment
// variable is changed. Every FramePool and Port must be gone before the Eal is.
class Eal {
 public:
  // Throws std::runtime_error with a message that says what went wrong and what to do about it. A
  // second Eal in one process is refused, also after the first is gone or has failed: DPDK cannot
  // be started again reliably.
  //
  // The affinity of the calling thread stays what it was, unless `extra` names cores (-c, -l or
  // --lcores). DPDK's own log goes to stderr, errors only, unless `extra` has a --log-level.
  explicit Eal(const EalOptions& options);
  ~Eal();

  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

 private:
  std::unique_ptr<DriverLog> log_;
};

}  // namespace rocemu::dpdk_io
