// All detectors.
#pragma once

#include <memory>

#include "verbs_shim/checker/detectors/detector.h"

namespace rocemu::check {

struct DetectorRow {
  const char* name;
  std::unique_ptr<Detector> (*make)();
};

// By name; the order is that of events: what one detector writes over, those after it see.
std::span<const DetectorRow> detector_table();

}  // namespace rocemu::check
