#include "emulator/daemon/dpdk_switch.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/monotonic_clock.h"
#include "dpdk_io/ethdev/device_arguments.h"
#include "dpdk_io/ethdev/ethernet_device.h"
#include "dpdk_io/ethdev/pci_device.h"
#include "dpdk_io/port/pcap.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/wire/icrc.h"

namespace rocemu::daemon {
namespace {

// All devices together have so many frames. Each QP may have a window (256) of them on the wire;
// when the pool is empty, senders wait.
constexpr unsigned kFrames = 4096;
// Runs have buffers of their own; where they are all in use, packets leave one by one. A device has
// some 16 of them under way while it moves bulk, and each thread some in its cache.
constexpr unsigned kRunsByDevice = 64, kLeastRuns = 128, kMostRuns = 1024;
constexpr uint64_t kBytesPerMb = 1'000'000;

uint64_t realtime_ns() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Looks at the PCI bus for the NICs that are asked for and for no other. DPDK says little of what
// is in the way, so that is found out before it starts.
dpdk_io::EalOptions eal_options(const Options& options) {
  dpdk_io::EalOptions eal;
  eal.loads_drivers = false;
  for (const dpdk_io::PortAssignment& port : options.ports) {
    eal.loads_drivers |= port.spec.kind == dpdk_io::PortKind::vdev;
    if (port.spec.kind == dpdk_io::PortKind::vdev || port.spec.kind == dpdk_io::PortKind::pci)
      eal.memory_mb += dpdk_io::EthernetDevice::kMemoryMb;
    if (port.spec.kind != dpdk_io::PortKind::pci) continue;
    const std::string address(dpdk_io::device_name(port.spec.name));
    if (const std::string why = dpdk_io::why_not_usable(address); !why.empty())
      throw std::runtime_error("port pci:" + address + ": " + why);
    eal.hugepages |= dpdk_io::reads_physical_memory(address);
    eal.pci_devices.push_back(port.spec.name);
  }
  return eal;
}

uint64_t capture_limit(const Options& options) {
  return options.pcap_limit_mb ? *options.pcap_limit_mb * kBytesPerMb
                               : dpdk_io::PcapWriter::kNoLimit;
}

void report(const std::string& message) { spdlog::error("{}", message); }

std::unique_ptr<PcapngFile> open_commented(const Options& options) {
  if (!options.pcap || options.pcap->extension() != ".pcapng") return nullptr;
  return std::make_unique<PcapngFile>(*options.pcap, capture_limit(options), report);
}

std::unique_ptr<dpdk_io::FrameWriter> open_plain(const Options& options) {
  if (!options.pcap) return nullptr;
  return std::make_unique<dpdk_io::PcapWriter>(*options.pcap, dpdk_io::PcapWriter::kWholeFrames,
                                               report, capture_limit(options));
}

}  // namespace

DpdkSwitch::DpdkSwitch(const Options& options)
    : eal_(eal_options(options)),
      pool_("frames", kFrames, transport::kMaxFrameBytes),
      run_pool_("runs", std::clamp(kRunsByDevice * options.devices, kLeastRuns, kMostRuns),
                transport::kMaxRunFrameBytes),
      capture_(open_commented(options)),
      commented_(static_cast<PcapngFile*>(capture_.get())),
      switch_(pool_) {
  pool_.leave_memory();
  run_pool_.leave_memory();
  if (capture_ == nullptr) capture_ = open_plain(options);
  if (capture_ != nullptr) switch_.set_capture(capture_.get(), realtime_ns);
  if (!options.icrc_always) {
    switch_.let_icrc_wait(wire::store_datagram_icrc);
    switch_.let_runs_pass(run_pool_);
  }
  if (options.network)
    switch_.set_network(options.network->topology, options.network->settings, monotonic_now_ns());
}

void DpdkSwitch::record(dpdk_io::UplinkPort& port) {
  if (capture_ != nullptr) port.set_capture(capture_.get(), realtime_ns);
}

}  // namespace rocemu::daemon
