#include "emulator/cli/commands.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/installation.h"
#include "emulator/cli/process/obstacle.h"
#include "emulator/cli/state_dir.h"
#include "emulator/fault/grammar.h"
#include "impairment/assignment.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {

void complain(const std::string& message) { std::cerr << "rocemu: " + message + "\n"; }

void require_printed() {
  errno = 0;
  if (std::cout.flush()) return;
  throw Failure(std::string("can't write the output: ") + std::strerror(errno != 0 ? errno : EIO));
}

void heed_obstacle(const std::vector<std::string>& program, Environment& environment) {
  const Obstacle obstacle = find_obstacle(program[0]);
  if (!obstacle.text.empty()) complain(obstacle.text);
  if (obstacle.refuses_preload) unset(environment, "LD_PRELOAD");
}

NicOptions checked(NicOptions options) {
  std::error_code error;
  for (std::filesystem::path* file :
       {&options.pcap, &options.config, &options.trace, &options.trace_on_error}) {
    if (!file->empty()) *file = std::filesystem::absolute(*file);
  }
  if (options.metrics.find('/') != std::string::npos)
    options.metrics = std::filesystem::absolute(options.metrics);
  const std::pair<const char*, const std::filesystem::path*> written[] = {
      {"--pcap", &options.pcap},
      {"--trace", &options.trace},
      {"--trace-on-error", &options.trace_on_error}};
  for (const auto& [option, file] : written)
    if (!file->empty() && !std::filesystem::is_directory(file->parent_path(), error))
      throw Failure("there is no folder " + file->parent_path().native() + " for " + option,
                    kUsage);
  for (const std::string& text : options.impair) {
    const impairment::ParsedAssignment parsed = impairment::parse_assignment(text);
    if (!parsed.assignment) throw Failure("--impair: " + parsed.error, kUsage);
  }
  for (const std::string& text : options.faults) {
    const fault::ParsedFaults parsed = fault::parse_faults(text);
    if (!parsed.error.empty()) throw Failure("--fault: " + parsed.error, kUsage);
  }
  return options;
}

void refuse_private(const std::string& name) {
  if (!name.starts_with(kPrivatePrefix)) return;
  throw Failure("names that start with '" + std::string(kPrivatePrefix) +
                    "' are those of `rocemu run`, whose NIC ends with its program; use another",
                kUsage);
}

namespace {

// Returns the private ABIs of the programs that could find the NIC; none where the libraries are
// not beside the command.
std::vector<int> served_private_abis() {
  try {
    return private_abis(find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR));
  } catch (const Failure&) {
    return {};
  }
}

}  // namespace

int version(const Options& options) {
  if (options.json) {
    const nlohmann::ordered_json report = {{"version", ROCEMU_VERSION},
                                           {"rdma_core_private_abis", served_private_abis()},
                                           {"abi_version", static_cast<int>(ROCEMU_ABI_VERSION)},
                                           {"json_version", kJsonVersion}};
    std::cout << report.dump() << '\n';
  } else {
    std::cout << version_text() << '\n';
  }
  return kSuccess;
}

}  // namespace rocemu::cli
