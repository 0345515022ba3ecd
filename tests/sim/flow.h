// One direction of a connection at work: posts its requests and its peer's receives when the plan
// says so, looks at every completion in the moment it appears, and holds it against the model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "tests/sim/arena_model.h"
#include "tests/sim/plan.h"
#include "tests/sim/verdict.h"

namespace rocemu::sim_scenarios {

// One side of a connection: a QP with its queues.
struct Party {
  Party(sim::EndpointNode& on, uint32_t send_depth) : node(on), send_queue(send_depth) {}

  sim::EndpointNode& node;
  wire::Qpn qpn{};
  sim::SimSendQueue send_queue;
  sim::SimReceiveQueue receive_queue;
  // These stand before them; null: nothing does.
  std::unique_ptr<transport::SendQueue> sends;
  std::unique_ptr<transport::ReceiveQueue> receives;
  sim::SimCompletionQueue send_cq;
  sim::SimCompletionQueue receive_cq;
  transport::QpAttributes attributes;
  bool killed = false;  // the program moved it to ERROR
  bool gone = false;    // or to RESET, or destroyed it

  bool in_error() const { return node.endpoint().state(qpn) == transport::QpState::error; }
};

inline constexpr transport::PdHandle kPd = 3;  // everybody's

// The word of one host that the fetch_adds of all connections count up.
struct SharedCounter {
  uint64_t address = 0;
  uint32_t key = 0;
  uint64_t posted = 0;
  std::vector<uint64_t> seen;  // what successful fetch_adds got
};

class Flow {
 public:
  Flow(const Plan& plan, const Connection& connection, uint32_t direction, Party& requester,
       Party& responder, SharedCounter& counter, sim::Fabric& fabric, Verdict& verdict,
       std::string name);

  // Schedules everything.
  void start();
  // Posts as many requests as are due and fit.
  void post_due();
  // Checks, when nothing is left to happen, that all requests were answered and memory is as it
  // must be.
  void check_end();
  // Checks, after the QPs were moved to ERROR, that all that was left was flushed.
  void check_flushed();
  // The QP of `party` has left without completions; its buffers are the program's again.
  void on_leave(const Party& party);

  bool failed() const { return first_error_.has_value(); }

 private:
  struct Piece {
    uint64_t address;
    uint32_t length_bytes;
    uint32_t key;
  };
  struct Target {
    uint64_t address = 0;
    uint32_t key = 0;
  };

  std::vector<Piece> place(sim::EndpointNode& node, const std::vector<uint32_t>& lengths,
                           uint32_t access);
  std::vector<transport::Sge> sges_of(const std::vector<Piece>& pieces) const;
  std::vector<std::byte> gather(sim::EndpointNode& node, const std::vector<Piece>& pieces) const;
  void fill(sim::EndpointNode& node, const std::vector<Piece>& pieces, std::byte with);
  void prepare(size_t op);
  Target target_of(size_t op);
  void post(size_t op);
  void post_receive(size_t index);

  void on_sent(const transport::Completion& completion);
  void on_received(const transport::Completion& completion);
  void on_success(size_t op);
  void on_failure(size_t op, const transport::Completion& completion);
  bool may_fail(size_t op, WcStatus status) const;
  bool may_wait_for_ever() const;
  bool must_fail_as_planned() const;
  void check_message(const transport::Completion& completion, size_t op);
  void check_arena(size_t executed, uint32_t offset, uint32_t length_bytes, const char* what);
  std::optional<size_t> planned_mishap() const;
  void fail(const std::string& what, size_t op) const;

  const Plan& plan_;
  const Connection& connection_;
  const QpSide& side_;
  const Direction& direction_;
  Party& requester_;
  Party& responder_;
  SharedCounter& counter_;
  sim::Fabric& fabric_;
  Verdict& verdict_;
  std::string name_;

  ArenaModel model_;
  uint64_t arena_ = 0;
  uint32_t arena_key_ = 0;
  std::vector<std::vector<Piece>> local_;     // by request
  std::vector<Target> targets_;               // by request
  std::vector<std::vector<Piece>> receives_;  // by receive
  std::vector<size_t> consumers_;             // by receive: the request that consumes it
  std::vector<uint64_t> consumer_index_;      // by request: its receive

  size_t due_ = 0;  // requests whose time has come
  size_t posted_ = 0;
  size_t finished_ = 0;  // requests before it have been accounted for
  size_t received_ = 0;  // receive completions so far
  size_t receives_posted_ = 0;
  size_t executed_ = 0;  // requests before it have been executed for certain
  std::optional<size_t> first_error_;
  WcStatus first_status_ = WcStatus::success;
  std::optional<size_t> first_receive_error_;
};

}  // namespace rocemu::sim_scenarios
