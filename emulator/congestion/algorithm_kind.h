// AlgorithmKind is what there is to choose from: it has a name, a table of parameters, presets that
// give them values, and makes an algorithm for each flow.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/congestion/algorithm.h"

namespace rocemu::congestion {

struct Parameter {
  std::string name;
  std::string unit = {};  // "us", "Mbit/s", "bytes", "%"; empty: a plain number
  double least = 0;
  double most = 0;
  bool whole = false;  // a number without a fraction
};

struct Preset {
  std::string name;
  std::vector<double> values;  // one for each parameter of the kind, in their order
  // The value for the device's notification point, which the published sets of values name as well.
  double min_time_between_cnps_us = 4;
};

struct AlgorithmKind {
  std::string name;
  Needs needs = {};
  std::vector<Parameter> parameters = {};
  std::vector<Preset> presets = {};  // at least one; the first is what is used when none is named
  // `values`: as of a Preset. Null: there is no memory for another one.
  std::function<std::unique_ptr<Algorithm>(std::span<const double> values, const Flow& flow)> make;
};

}  // namespace rocemu::congestion
