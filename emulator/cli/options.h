// The command line of `rocemu`, parsed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "emulator/cli/findings/check_options.h"

namespace rocemu::cli {

// The user's options for a NIC. A member that is not set is left to the configuration file, and
// then to the daemon's defaults.
struct NicOptions {
  std::optional<unsigned> devices;
  std::vector<std::string> ports;  // each DEVICE=PORT, as rocemud takes it
  std::filesystem::path pcap;
  std::string pcap_limit_mb;  // as rocemud takes it; empty: no limit
  std::filesystem::path trace;
  std::filesystem::path trace_on_error;
  // Each as rocemud takes it; empty: its own.
  std::string trace_limit_mb;
  std::string trace_last;
  std::string trace_filter;
  std::filesystem::path network;
  std::vector<std::string> impair;      // each as impairment::parse_assignment() takes it
  std::vector<std::string> faults;      // each as fault::parse_faults() takes it
  std::vector<std::string> congestion;  // each as rocemud takes it
  std::string recovery;                 // as rocemud takes it; empty: the default
  std::optional<std::string> shake;     // as rocemud takes it
  std::string metrics;                  // as rocemud takes it; empty: not served
  std::filesystem::path config;
  std::string log_level;
  bool check = false;  // the NIC looks for what only it can see of checked programs
};

enum class Command {
  kRun,
  kUp,
  kExec,
  kStatus,
  kMetrics,
  kTop,
  kDown,
  kEnv,
  kLinkSet,
  kLinkShow,
  kFault,
  kFindings,
  kVersion
};

struct TopOptions {
  bool once = false;
  double interval_s = 1;
  std::string sort = "tx";
  bool reverse = false;
  std::string filter;
};

struct Options {
  Command command = Command::kVersion;
  NicOptions nic;             // run, up
  bool keep_log = false;      // run
  std::string server;         // run; empty when not given
  bool share_memory = false;  // run, exec
  CheckOptions check;         // run, exec, up, findings
  TopOptions top;
  std::string name;                  // empty when not given
  std::filesystem::path socket;      // of a NIC that is up; empty when not given
  bool json = false;                 // up, status, top, link show, fault, findings, version
  std::vector<std::string> link;     // link set: DEVICE [DIRECTION] SPEC; link show: [DEVICE]
  std::vector<std::string> fault;    // DEVICE WHAT [KEY=VALUE]..., or list, or clear ID
  std::vector<std::string> program;  // run, exec: at least the program's name

  std::string name_or_default() const;
};

// Thrown when --help or --version is asked for: this is to be printed, and the end is success.
struct PrintAndExit {
  std::string text;
};

// `arguments` without the program's own name. Throws Failure (usage; own failure for run and exec)
// and PrintAndExit.
Options parse_options(const std::vector<std::string>& arguments);

// True for the commands whose exit status is that of a program.
bool hands_on_status(Command command);

std::string version_text();

}  // namespace rocemu::cli
