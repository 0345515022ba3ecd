// The command line and configuration of rocemud.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_io/spec/port_spec.h"
#include "emulator/daemon/engine/parallel_policy.h"
#include "emulator/daemon/metrics/metrics_address.h"
#include "emulator/device/attributes/device_config.h"
#include "emulator/dma/address_space.h"
#include "emulator/shake/common/settings.h"
#include "emulator/trace/record/filter.h"
#include "emulator/transport/interface/attributes.h"
#include "impairment/assignment.h"
#include "network/description/description.h"

namespace rocemu::daemon {

inline constexpr int kExitUsage = 2;

struct Options {
  std::filesystem::path dir;
  uint32_t devices = 2;
  std::optional<std::filesystem::path> pcap;
  std::optional<uint64_t> pcap_limit_mb;  // in units of 1000 * 1000 bytes
  std::optional<std::filesystem::path> trace;
  std::optional<std::filesystem::path> trace_on_error;  // not beside `trace`
  std::optional<uint64_t> trace_limit_mb;               // of 1000 * 1000 bytes
  std::optional<uint64_t> trace_last;                   // records of a device that lead to an error
  trace::Filter trace_filter;
  std::vector<std::string> trace_devices;       // empty: all
  std::vector<dpdk_io::PortAssignment> ports;   // each device once at most; the others: switch
  std::vector<impairment::Assignment> impair;   // in their order: a later one replaces an earlier
  std::vector<std::string> faults;              // each as fault::parse_faults() takes it
  std::optional<network::Description> network;  // between the devices on the switch
  std::optional<MetricsAddress> metrics;        // where they are served; empty: nowhere
  std::optional<int> ready_fd;
  std::string log_level = "info";
  bool die_with_parent = false;
  bool check = false;              // look for what only the NIC sees of programs that are checked
  std::optional<dma::Method> dma;  // empty: whichever works
  ParallelMode parallel = ParallelMode::automatic;
  unsigned parallel_threads = 0;  // at most; 0: by the number of CPUs
  bool icrc_always = false;       // also where nobody sees it
  device::DeviceLimits limits;
  transport::TransportLimits transport;  // but for congestion control, which is by device
  std::vector<congestion::Settings> congestion;
  shake::Settings shake;  // with a seed, when it is on
};

struct ParsedOptions {
  std::optional<Options> options;  // empty: nothing to run, exit with the code
  int exit_code = 0;
};

// Prints the help, the version, or one line that says what is wrong.
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace rocemu::daemon
