// A Plan is what one scenario does, drawn from its seed alone: hosts, links and their faults,
// connections, requests, receives, and at most one mishap per connection. Nothing here has run yet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/sim/polling_node.h"
#include "emulator/transport/interface/work.h"
#include "impairment/link.h"

namespace rocemu::sim_scenarios {

using transport::WcStatus;
using transport::WorkOpcode;

// Mishap says what is wrong with one request, and so has to end its connection.
enum class Mishap : uint8_t {
  none,
  // seen by the requester
  bad_lkey,
  malformed,
  unreachable_local,  // the check passes, the bytes cannot be moved
  // seen by the responder
  bad_rkey,
  no_rights,
  misaligned_atomic,
  unreachable_remote,
  short_receive,
  bad_receive_lkey,
  malformed_receive,
  unreachable_receive,
};

struct Op {
  WorkOpcode opcode = WorkOpcode::send;
  bool signaled = true;
  bool solicited = false;
  bool fence = false;
  bool is_inline = false;
  Mishap mishap = Mishap::none;
  std::vector<uint32_t> sge_bytes;  // lengths of the SGEs
  uint32_t length_bytes = 0;
  uint32_t arena_offset = 0;    // WRITE, READ and atomics: where in the peer's arena …
  bool shared_counter = false;  // … or, a fetch_add of 1, the counter of the peer's host
  uint32_t immediate = 0;
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  uint64_t payload_seed = 0;
  uint64_t post_at_ns = 0;
};

// For one request that consumes a receive.
struct Receive {
  std::vector<uint32_t> sge_bytes;
  uint64_t post_at_ns = 0;
};

// The requests of one side of a connection, and the receives its peer posts for them.
struct Direction {
  std::vector<Op> ops;
  std::vector<Receive> receives;
  uint32_t arena_bytes = 0;  // at the peer; the first kCells words are for atomics
  uint64_t arena_seed = 0;
  uint32_t send_depth = 1;
};
inline constexpr uint32_t kCells = 4;
inline constexpr uint32_t kCellBytes = kCells * 8;

inline constexpr uint32_t kLongestMessageBytes = 1 << 20;

// Leave says how a program may do away with a QP that has work under way: none of it is completed.
enum class Leave : uint8_t { reset, destroy };

struct QpSide {
  uint32_t node = 0;
  uint32_t first_psn = 0;
  uint8_t timeout = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;
  uint8_t min_rnr_timer = 0;
  uint8_t max_rd_atomic = 0;
  std::optional<uint64_t> kill_at_ns;   // the program moves the QP to ERROR
  std::optional<uint64_t> leave_at_ns;  // or does away with it …
  Leave leave = Leave::reset;
  std::optional<uint64_t> pause_at_ns;  // and to SQD, …
  uint64_t resume_after_ns = 0;         // … for so long
};

struct Connection {
  uint32_t mtu_bytes = 256;
  QpSide side[2];
  Direction direction[2];  // direction[i]: requests of side[i]
};

struct Plan {
  // The network loses and delays nothing for long: nothing may fail or be sent twice without cause.
  bool calm = false;
  bool lends = false;  // the payload of runs
  std::vector<sim::NodeOptions> nodes;
  std::vector<impairment::Impairments> links;  // from node i to node j: [i * nodes + j]
  std::vector<Connection> connections;
  uint64_t fabric_seed = 0;
};

Plan draw_plan(uint64_t seed);

constexpr bool consumes_receive(WorkOpcode op) {
  return transport::is_send(op) || op == WorkOpcode::write_imm;
}
constexpr bool touches_arena(WorkOpcode op) { return !transport::is_send(op); }

}  // namespace rocemu::sim_scenarios
