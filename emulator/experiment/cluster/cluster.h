// NICs at the hosts of a network, in virtual time. The NIC's transport and the network do all that
// happens; this is what moves time on from one event to the next.
//
// 1. A NIC is looked at when a frame comes for it, when one of its timers is due, when work is
//    posted to it, and when its last frame has left while it has more. Nothing polls.
// 2. A NIC hands its port a frame when the port is free, so that what it decides is decided as late
//    as hardware does, and nothing waits where no pause and no congestion control sees it.
//    Acknowledgements alone do not wait for that: a paused port does not keep them in the NIC.
// 3. A NIC takes no time of its own, neither for a frame nor for a request.
// 4. Headers are built and parsed by the NIC's code; payload is a length (header_frames.h). There
//    is no wire that could change a bit, so the ICRC is the port's: a frame that a switch has cut
//    has a wrong one, and the port drops it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "emulator/experiment/cluster/absent_memory.h"
#include "emulator/experiment/cluster/header_frames.h"
#include "emulator/experiment/cluster/message_queue.h"
#include "emulator/experiment/cluster/nic.h"
#include "emulator/experiment/settings/experiment.h"
#include "emulator/transport/timer_queue.h"
#include "network/switching/network.h"

namespace rocemu::experiment {

// A connection's number, for as long as it is open.
using ConnectionId = uint32_t;

// News of a flow: its last message is completed, has failed, or was received.
struct Told {
  enum class What : uint8_t { completed, failed, received };
  uint32_t flow;
  What what;
};

struct ClusterCounts {
  uint64_t frames_delivered = 0;
  uint64_t cut_frames = 0;  // dropped by a NIC's port, for their ICRC
  uint64_t connections = 0;
};

class Cluster {
 public:
  Cluster(const network::Description& network, const Nics& nics, uint64_t seed);
  ~Cluster();

  uint32_t host_count() const { return network_.host_count(); }

  // A connection between two hosts, ready to send. Throws std::runtime_error when one of them has
  // no room for another QP.
  ConnectionId connect(uint32_t from, uint32_t to);
  // Its QPs are gone, and so is what is under way.
  void close(ConnectionId connection);
  void post(ConnectionId connection, const Message& message, TimeNs now);

  // Payload of the flow that has come to its far end, or to this one by READs.
  // Precondition: something was posted for the flow.
  uint64_t moved_bytes(uint32_t flow) const { return memory_.arrived_bytes(flow); }

  // The rate that congestion control allows the near end now; nothing when no algorithm decides.
  std::optional<uint64_t> allowed_rate_bps(ConnectionId connection) const;

  // kNever when nothing will happen by itself.
  TimeNs next_event() const { return std::min(network_.next_event(), timers_.next_deadline()); }
  // Makes happen what is due. `now` is next_event() or earlier, and never goes back.
  void advance(TimeNs now);
  // The news that nobody has taken out yet.
  std::vector<Told>& told() { return completions_.told; }

  // Counts of all NICs together.
  transport::Counters counters() const;
  const ClusterCounts& counts() const { return counts_; }

 private:
  friend class Nic<Cluster>;
  using Switches = network::Network<HeaderFrames, Cluster>;
  friend Switches;

  // The completion queue of all QPs.
  class Completions final : public transport::CompletionQueue {
   public:
    void push(const transport::Completion& completion) noexcept override;
    bool reaches(const transport::MemoryRange&) const noexcept override { return false; }

    std::vector<Told> told;
  };
  struct End {
    uint32_t host = 0;
    wire::Qpn qpn{};
    MessageQueue queue;
    ExpectedReceives receives;
  };
  struct Connection {
    std::array<End, 2> ends;
  };

  // Called by the network.
  void deliver(uint32_t host, TimeNs now, HeaderFrame* frame);
  void lose(uint32_t, network::NetworkLoss, HeaderFrame* frame) { HeaderFrames::release(frame); }
  void ready(uint32_t host, TimeNs now);
  // Called by a NIC.
  void send(uint32_t host, const std::byte* bytes, uint32_t length_bytes);

  transport::QpAttributes attributes_of(const End& end, const End& peer, uint16_t source_port);
  void turn(uint32_t host, TimeNs now);
  void pump(uint32_t host, TimeNs now);

  Nics settings_;
  Random random_;
  HeaderFramePool frames_;
  BuildingBuffers buffers_;
  AbsentMemory memory_;
  Completions completions_;
  Switches network_;
  std::deque<Nic<Cluster>> nics_;
  std::deque<Connection> connections_;
  std::vector<ConnectionId> free_connections_;
  transport::TimerQueue timers_;  // by host: when it has to be looked at
  TimeNs now_ = 0;
  ClusterCounts counts_;
  std::array<std::byte, transport::kMaxFrameBytes> arriving_{};  // headers before any payload

 public:
  const Switches& network() const { return network_; }
};

}  // namespace rocemu::experiment
