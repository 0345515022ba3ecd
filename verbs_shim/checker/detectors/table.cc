#include "verbs_shim/checker/detectors/table.h"

#include "verbs_shim/checker/detectors/makers.h"

namespace rocemu::check {

std::span<const DetectorRow> detector_table() {
  static constexpr DetectorRow kRows[] = {
      {"leaks", make_leaks},
  };
  return kRows;
}

}  // namespace rocemu::check
