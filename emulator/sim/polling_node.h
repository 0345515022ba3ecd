// The loop that a NIC's engine runs, in virtual time: a burst of received frames, timers, a burst
// of sent ones. The derived class has what takes its turn in the loop: a bare endpoint of the
// transport (endpoint_node.h) or a whole device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "emulator/sim/node.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/wire/types.h"
#include "network/due_queue.h"

namespace rocemu::sim {

class Fabric;

struct NodeOptions {
  transport::TransportLimits limits;
  uint32_t max_qps = 64;
  bool ipv6 = false;
  uint64_t poll_interval_ns = 500;  // between two turns of the loop, at least 1
  unsigned rx_burst = 32;
  unsigned tx_burst = 32;
  uint32_t no_buffer_ppm = 0;  // chance that the sink has no buffer
  bool runs = false;           // it sends runs (wire/run.h)
  bool lends = false;          // they may lend their payload; frames owe their ICRC then
};

// It is its own sink for what it sends: buffers are bounded by nothing but chance (no_buffer_ppm).
class PollingNode : public Node, public transport::FrameSink {
 public:
  // `seed` decides when the sink has no buffer. The fabric outlives the node.
  PollingNode(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed);

  const wire::Gid& gid() const { return gid_; }

  // Headers and addresses of the way to `peer`.
  transport::Path path_to(const PollingNode& peer) const;

  // Something was changed from outside (a post, a modify): the loop turns soon.
  void wake();

  // Called after every turn of the loop, when set.
  std::function<void()> after_poll;
  bool in_turn() const { return in_turn_; }
  // Says, when set, when a frame that has arrived is seen by the loop: now or later.
  std::function<TimeNs(TimeNs now, std::span<const std::byte> frame)> arrival_due;

  void receive(network::SharedFrame frame) override;
  void take_lent() override;
  void poll(TimeNs now) override;

  bool allocate(transport::FrameBuffer& buffer) noexcept override;
  bool takes_runs() const noexcept override { return options_.runs; }
  bool allocate_run(transport::FrameBuffer& buffer) noexcept override { return allocate(buffer); }
  bool may_owe_icrc() const noexcept override { return options_.lends; }
  bool takes_lent() const noexcept override { return options_.lends; }
  uint64_t landing_epoch() const noexcept override;
  void send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept override;
  void discard(const transport::FrameBuffer& buffer) noexcept override;

 protected:
  // One turn: takes `frames`, which may be none, and of which `runs` say which are such,
  // handles timers that are due, and sends at most options().tx_burst frames through this sink.
  virtual void turn(TimeNs now, std::span<const std::span<const std::byte>> frames,
                    std::span<const transport::ReceivedRun> runs) = 0;
  // The time by which the next turn has to be; `now` when there is work already, kNever when only a
  // frame or wake() can bring some.
  virtual TimeNs next_turn(TimeNs now) const = 0;

  const NodeOptions& options() const { return options_; }
  // That of all frames that are received: all nodes have the same options in this.
  transport::Icrc icrc() const {
    return options_.lends ? transport::Icrc::owed : transport::Icrc::there;
  }
  // True in a turn that did not get all frames that have arrived.
  bool unread() const { return !received_.empty(); }

 private:
  void poll_by(TimeNs at);
  void hold(network::SharedFrame frame);
  void see_held();

  Fabric& fabric_;
  NodeOptions options_;
  wire::Gid gid_;
  Random random_;

  network::DueQueue<network::SharedFrame> held_;  // by arrival_due
  std::deque<network::SharedFrame> received_;
  std::vector<std::unique_ptr<std::byte[]>> free_buffers_;
  bool in_turn_ = false;
  TimeNs polled_at_ = 0;
  TimeNs poll_at_ = kNever;  // time of the turn that is scheduled
};

}  // namespace rocemu::sim
