// Two hosts with a reliable QP each, on one link, of which one posts equal WRITEs or READs all at
// once: what the tables of goodput are measured with.
#pragma once

#include <cstdint>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"

namespace rocemu::sim {

struct BulkOptions {
  transport::TransportLimits limits = {};
  impairment::Impairments link = {};  // in both directions
  transport::WorkOpcode opcode = transport::WorkOpcode::write;
  uint32_t messages = 0;
  uint32_t message_bytes = 64 * 1024;
  uint32_t mtu_bytes = 4096;
  uint8_t timeout = 0;  // as in QpAttributes
};

class BulkPair {
 public:
  explicit BulkPair(const BulkOptions& options);
  BulkPair(const BulkPair&) = delete;
  BulkPair& operator=(const BulkPair&) = delete;

  // True when all requests have succeeded, within a minute.
  bool run();
  // Counts payload alone.
  double goodput_mbit_per_s() const;

 private:
  const BulkOptions options_;

 public:
  struct Side {
    Side(EndpointNode& its_node, const BulkOptions& options);
    void connect(const Side& peer, const BulkOptions& options);

    EndpointNode& node;
    SimSendQueue send_queue;
    SimReceiveQueue receive_queue;
    SimCompletionQueue cq;
    wire::Qpn qpn{};
    uint64_t address = 0;
    uint32_t key = 0;
  };

  Fabric fabric{1};
  Side from;
  Side to;

 private:
  uint32_t completed_ = 0;
  TimeNs end_ns_ = 0;
};

}  // namespace rocemu::sim
