// An endpoint's reports of flows whose rate an algorithm decides, and of QPs' loss recovery.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/congestion/algorithm.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

struct FlowReport {
  wire::Qpn qpn{};
  wire::Qpn remote_qpn{};
  uint64_t rate_bps = 0;                            // now
  uint64_t window_bytes = congestion::kUnlimited;   // now
  uint64_t cnps = 0;                                // since the flow began
  std::vector<congestion::NamedValue> values = {};  // the algorithm's own
};

// RecoveryReport says by which recovery a QP makes good for losses with its present peer; for a QP
// without acknowledgements it says go_back_n.
struct RecoveryReport {
  wire::Qpn qpn{};
  Recovery recovery = Recovery::go_back_n;
};

}  // namespace rocemu::transport
