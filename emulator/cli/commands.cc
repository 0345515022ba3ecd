#include "emulator/cli/commands.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "emulator/cli/exit_codes.h"
#include "impairment/assignment.h"

namespace rocemu::cli {

void complain(const std::string& message) { std::cerr << "rocemu: " + message + "\n"; }

NicOptions checked(NicOptions options) {
  std::error_code error;
  for (std::filesystem::path* file : {&options.pcap, &options.config}) {
    if (!file->empty()) *file = std::filesystem::absolute(*file);
  }
  if (!options.pcap.empty() && !std::filesystem::is_directory(options.pcap.parent_path(), error)) {
    throw Failure("there is no folder " + options.pcap.parent_path().native() + " for --pcap",
                  kUsage);
  }
  for (const std::string& text : options.impair) {
    const impairment::ParsedAssignment parsed = impairment::parse_assignment(text);
    if (!parsed.assignment) throw Failure("--impair: " + parsed.error, kUsage);
  }
  return options;
}

}  // namespace rocemu::cli
