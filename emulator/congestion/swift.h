// Swift (Kumar et al., SIGCOMM 2020): a window that holds delay near a target.
#pragma once

#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

std::shared_ptr<const AlgorithmKind> swift();

}  // namespace rocemu::congestion
