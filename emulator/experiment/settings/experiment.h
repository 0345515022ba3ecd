// An experiment as its file says it (docs/simulator.md): values alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "emulator/experiment/settings/size_distribution.h"
#include "emulator/transport/interface/attributes.h"
#include "network/description/description.h"

namespace rocemu::experiment {

enum class Connections : uint8_t {
  per_flow,  // each flow has QPs of its own, which end with it
  per_pair,  // flows between the same two hosts go over the same QPs
};

struct NicSettings {
  transport::TransportLimits limits;
  uint32_t path_mtu_bytes = 1024;
  uint32_t max_qps = 16384;  // for each NIC
  uint8_t timeout = 14;      // ACK timeout 4.096 us * 2^timeout
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  uint8_t max_rd_atomic = 16;
  uint8_t dscp = 0;
  Connections connections = Connections::per_flow;
};

struct Nics {
  NicSettings usual;
  std::map<uint32_t, NicSettings> others;  // by host: those with settings of their own

  const NicSettings& of(uint32_t host) const {
    const auto own = others.find(host);
    return own == others.end() ? usual : own->second;
  }
  // Returns the path MTU of a connection between the two: no more than both have.
  uint32_t path_mtu_bytes(uint32_t a, uint32_t b) const {
    return std::min(of(a).path_mtu_bytes, of(b).path_mtu_bytes);
  }
};

enum class Verb : uint8_t { write, write_imm, send, read };

enum class WorkloadKind : uint8_t {
  incast,
  permutation,
  all_to_all,
  ring_allreduce,
  tree_allreduce,
  poisson,
  trace,
};

// One line of a trace.
struct TracedFlow {
  TimeNs start_ns = 0;
  uint32_t from = 0;  // hosts
  uint32_t to = 0;
  uint64_t bytes = 0;
  Verb verb = Verb::write;
};

// The kind decides which members count (docs/simulator.md).
struct WorkloadSettings {
  std::string name;
  WorkloadKind kind = WorkloadKind::incast;
  Verb verb = Verb::write;
  std::vector<uint32_t> hosts;  // hosts that take part
  uint32_t to = 0;              // incast: the receiver
  uint32_t flows = 1;           // for each pair at a time
  uint32_t chunks = 1;          // tree: pieces that are on their way one after the other
  uint64_t bytes = 0;           // for each flow; 0: it goes on until the end
  TimeNs at_ns = 0;
  TimeNs until_ns = 0;     // no flow begins from here on
  TimeNs every_ns = 0;     // again so often; 0: when it is over
  uint32_t rounds = 1;     // at most
  uint32_t load_ppm = 0;   // share of the rates of the hosts' links
  SizeDistribution sizes;  // poisson
  std::vector<TracedFlow> trace;
};

struct ResultSettings {
  TimeNs interval_ns = 0;       // time between two looks for the series; 0: none are kept
  TimeNs warmup_ns = 0;         // goodput and fairness leave out what comes before
  std::vector<uint32_t> ports;  // ports in the series; empty: all
  bool plots = true;
};

struct Experiment {
  std::string name;
  uint64_t seed = 1;
  TimeNs duration_ns = 0;  // as long as flows begin
  TimeNs drain_ns = 0;     // and so long at most after that for them to end
  network::Description network;
  Nics nics;
  std::vector<WorkloadSettings> workloads;
  ResultSettings results;
};

}  // namespace rocemu::experiment
