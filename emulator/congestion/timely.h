// TIMELY (Mittal et al., SIGCOMM 2015): a rate, by how round trips change.
#pragma once

#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

std::shared_ptr<const AlgorithmKind> timely();

}  // namespace rocemu::congestion
