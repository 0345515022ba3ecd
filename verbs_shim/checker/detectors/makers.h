// What makes each detector; the classes are in the files of their names.
#pragma once

#include <memory>

#include "verbs_shim/checker/detectors/detector.h"

namespace rocemu::check {

std::unique_ptr<Detector> make_leaks();

}  // namespace rocemu::check
