#include "emulator/cli/findings/nic_checks.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

constexpr const char* kFile = "check.json";

}  // namespace

void remember_checks(const std::filesystem::path& state_dir, const CheckOptions& options) {
  if (!options.wanted()) return;
  const nlohmann::json checks = {{"names", options.names},
                                 {"suppressions", options.suppressions.native()}};
  std::ofstream file(state_dir / kFile);
  file << checks.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  file.close();
  if (!file) throw Failure("cannot write " + (state_dir / kFile).native());
}

CheckOptions or_those_of_nic(CheckOptions options, const std::filesystem::path& state_dir) {
  if (options.wanted()) return options;
  std::ifstream file(state_dir / kFile);
  if (!file) return options;
  const nlohmann::json checks = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!checks.is_object()) return options;
  options.names = checks.value("names", "");
  if (options.suppressions.empty()) options.suppressions = checks.value("suppressions", "");
  return options;
}

}  // namespace rocemu::cli
