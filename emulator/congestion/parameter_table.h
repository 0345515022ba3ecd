// The parameters of an algorithm as a table: for each its name, unit and range, where the algorithm
// has it, and what each preset gives it.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

template <class Parameters, size_t kPresets>
struct ParameterRow {
  const char* name;
  const char* unit;
  double least;
  double most;
  bool whole;
  double Parameters::*field;
  std::array<double, kPresets> presets;
};

// A kind whose algorithms are made as Maker(parameters, flow).
template <class Maker, class Parameters, size_t kRows, size_t kPresets>
std::shared_ptr<const AlgorithmKind> kind_of(
    const char* name, const Needs& needs, const ParameterRow<Parameters, kPresets> (&rows)[kRows],
    const std::array<const char*, kPresets>& presets) {
  AlgorithmKind kind{.name = name, .needs = needs, .make = {}};
  for (const char* preset : presets) kind.presets.push_back({preset, {}});
  for (const auto& row : rows) {
    kind.parameters.push_back({row.name, row.unit, row.least, row.most, row.whole});
    for (size_t i = 0; i < kPresets; ++i) kind.presets[i].values.push_back(row.presets[i]);
  }
  kind.make = [&rows](std::span<const double> values, const Flow& flow) {
    Parameters parameters{};
    for (size_t i = 0; i < std::min(values.size(), kRows); ++i)
      parameters.*rows[i].field = values[i];
    return std::make_unique<Maker>(parameters, flow);
  };
  return std::make_shared<AlgorithmKind>(std::move(kind));
}

}  // namespace rocemu::congestion
