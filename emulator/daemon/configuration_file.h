// The configuration file as CLI11 reads TOML, and beside that a list of tables, [[fault]], each of
// which becomes one value of the option --fault.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <vector>

namespace rocemu::daemon {

class ConfigurationFile final : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
};

}  // namespace rocemu::daemon
