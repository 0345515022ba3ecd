// What an endpoint tells of a flow whose rate an algorithm decides.
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

// Of a reliable QP: by which recovery it makes good for losses, with the peer that it has.
struct RecoveryReport {
  wire::Qpn qpn{};
  Recovery recovery = Recovery::go_back_n;
};

}  // namespace rocemu::transport
