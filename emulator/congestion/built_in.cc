// The kinds of algorithms that can be chosen by name. A new one is a file of its own, and a line
// here.
#include "emulator/congestion/dcqcn.h"
#include "emulator/congestion/hpcc.h"
#include "emulator/congestion/settings.h"
#include "emulator/congestion/swift.h"
#include "emulator/congestion/timely.h"

namespace rocemu::congestion {

std::span<const std::shared_ptr<const AlgorithmKind>> built_in() {
  static const std::vector<std::shared_ptr<const AlgorithmKind>> kinds{dcqcn(), swift(), timely(),
                                                                       hpcc()};
  return kinds;
}

}  // namespace rocemu::congestion
