// A network of switches and hosts: frames go in at a host, wait in queues, cross cables, and come
// out at others. No clock: the owner says what time it is, and advance() makes happen what is due
// by then, each at its own time. One seed decides all that is left to chance.
//
// A switch stores and forwards. A frame has left the buffer, and is marked, when its first byte
// leaves; it is at the other end when its last byte has come.
//
// A pause is 64 bytes on the cable, before all other frames. It is nobody's but the network's: a
// frame of a host that looks like one goes nowhere (IEEE 802.1Q-2018, 8.6.3). A host's own port
// obeys pauses, so that its transport need not know of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "network/due_queue.h"
#include "network/mac.h"
#include "network/mac_table.h"
#include "network/switching/packet_headers.h"
#include "network/switching/packet_pool.h"
#include "network/switching/path_chooser.h"
#include "network/switching/port.h"
#include "network/switching/settings.h"
#include "network/switching/shared_buffer.h"
#include "network/topology/routes.h"
#include "network/topology/topology.h"

namespace rocemu::network {

inline constexpr uint32_t kPauseFrameBytes = 64;
inline constexpr size_t kMaxLearned = 4096;  // MACs

// `Frames` says what a frame is (network/README.md). The owner has, called for frames that have
// come to a host or never will:
//   void deliver(uint32_t host, TimeNs at, Frame)
//   void lose(uint32_t port, NetworkLoss, Frame)
// and may have
//   void ready(uint32_t host, TimeNs now)
// which is called when the host's last frame has left it: the next one can leave at once.
template <class Frames, class Owner>
class Network {
 public:
  using Frame = typename Frames::Frame;

  // Precondition: problem(topology) is empty. At most `max_packets` of the hosts are inside; memory
  // for them is taken now when that is bounded. Times of failures count from `start`.
  Network(const Topology& topology, const NetworkSettings& settings, Owner& owner,
          size_t max_packets = std::numeric_limits<size_t>::max(), TimeNs start = 0);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  uint32_t host_count() const noexcept { return static_cast<uint32_t>(host_ports_.size()); }
  uint32_t port_count() const noexcept { return static_cast<uint32_t>(ports_.size()); }
  uint32_t port_of_host(uint32_t host) const noexcept { return host_ports_[host]; }

  // The MACs are told, or they are those that frames come from, and frames to others are flooded
  // (network/forwarding.h).
  void add_mac(uint64_t mac, uint32_t host) { macs_.set(mac, host_ports_[host]); }
  void learn_macs() noexcept { learns_ = true; }

  // A host sends. advance(now) has been called, and `now` never goes back.
  void send(uint32_t host, TimeNs now, Frame frame);

  // A storm of pauses on a host's link, for all priorities, until it is taken back: the host pauses
  // what comes to it (`received`), its neighbour what it sends (`sent`). What waits for it fills
  // the switch, which then pauses those that it has it from, as far as its PFC goes.
  void storm(uint32_t host, TimeNs now, bool received, bool sent);

  // Nothing of the host waits or leaves at the moment.
  bool idle(uint32_t host) const noexcept {
    const Port& port = ports_[host_ports_[host]];
    return !port.cable.busy && port.queues.filled == 0;
  }

  // kNever when nothing will happen by itself.
  TimeNs next_event() const noexcept { return due_.next(); }
  void advance(TimeNs now);

  const PortCounters& counters(uint32_t port) const noexcept { return ports_[port].counters; }
  uint64_t queue_bytes(uint32_t port, unsigned priority) const noexcept {
    return ports_[port].queues.fifos[priority].bytes;
  }
  TimeNs paused_ns(uint32_t port, TimeNs now) const noexcept {
    return ports_[port].paused.paused_ns(now);
  }
  bool link_up(uint32_t link) const noexcept { return links_down_[link] == 0; }
  size_t packets() const noexcept { return pool_.in_use(); }

 private:
  enum class EventKind : uint8_t { departed, arrival, pause_over, repeat_pause, down, up, reroute };
  struct Event {
    EventKind kind;
    uint32_t at;  // port, or number of the failure
  };
  struct Switch {
    SharedBuffer buffer;
    PathChooser paths;
  };
  using Fifo = PacketFifo;

  void add_ports(const Topology& topology);
  void add_switches(const Topology& topology);
  void schedule(TimeNs at, EventKind kind, uint32_t what) { due_.push(at, Event{kind, what}); }
  void handle(TimeNs now, const Event& event);

  // These read a packet on its way in.
  PacketState classify(const Frame& frame) const noexcept;
  uint32_t destination_of(uint32_t host, std::span<const std::byte> bytes);
  static std::span<const std::byte> header_bytes(const Frame& frame) noexcept;
  static std::byte* surplus_of(Packet<Frame>& packet) noexcept;

  // These take a packet through: it has come to a node, goes into a queue, leaves it.
  void arrive(uint32_t port, TimeNs now);
  void forward(uint32_t node, uint32_t id, TimeNs now);
  void flood(uint32_t node, uint32_t id, TimeNs now);
  void queue_at(uint32_t node, uint32_t port, uint32_t id, TimeNs now);
  bool admit(Switch& at, const Port& port, const PacketState& packet);
  bool trim(Port& port, Packet<Frame>& packet);
  void enqueue(Port& port, uint32_t id);
  void start(uint32_t port, TimeNs now);
  void depart(uint32_t port, TimeNs now);
  uint32_t next_to_send(uint32_t number, TimeNs now);
  void leave_buffer(Switch& at, PacketState packet, TimeNs now);
  void mark(Port& port, Packet<Frame>& packet);
  void stamp(uint32_t number, Packet<Frame>& packet, TimeNs now);
  void lose(uint32_t port, NetworkLoss loss, uint32_t id) {
    ++ports_[port].counters.of(loss);
    owner_.lose(port, loss, pool_.give_back(id));
  }

  // Pauses.
  void check_pause(Switch& at, uint32_t ingress, unsigned priority, TimeNs now);
  void set_storm(uint32_t port, bool on, TimeNs now);
  uint32_t make_pause(uint32_t port, TimeNs now);
  void obey_pause(uint32_t port, const PacketState& pause, TimeNs now);
  // Long enough to be repeated before it is over.
  TimeNs pause_ns(const Port& port) const noexcept {
    constexpr TimeNs kShortestNs = 100;
    return std::max(kShortestNs, uint64_t{port.settings->pfc.quanta} * 512 * 1'000'000'000 /
                                     port.cable.line.rate_bits_per_s());
  }

  // Links that fail.
  void take_down(const LinkFailure& failure, uint32_t number, TimeNs now);
  void bring_up(const LinkFailure& failure, uint32_t number, TimeNs now);
  void empty(uint32_t port, TimeNs now);
  void reroute();
  void reroute_later(TimeNs now) {
    if (settings_.reroute_ns == 0) return reroute();
    schedule(now + settings_.reroute_ns, EventKind::reroute, 0);
  }

  NetworkSettings settings_;
  Owner& owner_;
  size_t max_packets_;
  Routes routes_;
  Random random_;  // losses and marks
  std::vector<Port> ports_;
  std::vector<std::unique_ptr<Switch>> switches_;  // by node; nullptr: a host
  std::vector<uint32_t> host_ports_;
  std::vector<uint32_t> host_of_node_;
  std::vector<unsigned> links_down_;  // failures that each link has now
  MacTable<const uint32_t> macs_;
  PacketPool<Frame> pool_;
  DueQueue<Event> due_;
  bool learns_ = false;
};

}  // namespace rocemu::network

#include "network/switching/network_impl.h"
