// An experiment's file: TOML, in the same grammar as a network's (docs/simulator.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "emulator/experiment/settings/experiment.h"

namespace rocemu::experiment {

// Either an experiment, or one line without a full stop that names the file, the key and what is
// allowed.
struct ParsedExperiment {
  std::optional<Experiment> experiment;
  std::string error;
};

// A key with another value than the file's: "workload.background.load=30%".
struct Override {
  std::string section;
  std::string name;
  std::vector<std::string> values;
};
struct ParsedOverride {
  std::optional<Override> value;
  std::string error;
};
ParsedOverride parse_override(const std::string& text);

// `name` is the file's, for messages and for the files that it names, which are read from beside
// it.
ParsedExperiment parse_experiment(const std::string& text, const std::filesystem::path& name,
                                  const std::vector<Override>& overrides = {});
ParsedExperiment read_experiment(const std::filesystem::path& file,
                                 const std::vector<Override>& overrides = {});

}  // namespace rocemu::experiment
