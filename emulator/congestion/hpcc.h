// HPCC (Li et al., SIGCOMM 2019): a window, by what the switches on the way say of their queues.
#pragma once

#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

std::shared_ptr<const AlgorithmKind> hpcc();

}  // namespace rocemu::congestion
