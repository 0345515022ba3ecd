// An Ethernet switch inside the process, without copies: a frame's buffer goes from the port that
// transmits it to the queue of the port that has its destination MAC. The MACs are configured, not
// learned. Its forwarding and its links are those of network/.
//
//   - Unicast goes to the port with that MAC, the sender itself included (a device that talks to
//     itself); to a MAC nobody has, it is dropped and counted at the sender.
//   - Broadcast and multicast go to all other ports, as one buffer with several references.
//   - Each port's receive queue is bounded; what does not fit is dropped, counted at the receiver.
//
// Each direction of a port's link can have impairments: transmit is from the port to the switch,
// receive from the switch to the port. A frame that arrives later waits in a queue, ordered by
// time, that is as long as the pool; every receive() and transmit() of any port moves on what is
// due by then.
//
// With a network (set_network) the frames go through that instead: a port is one of its hosts, in
// the order in which they were added, and what happens between them is network/switching's to say.
// A frame that is lost there is counted at the sender. Pauses are the network's: without one a port
// knows of none.
//
// One thread drives the switch and all its ports, so nothing is locked; but between hold() and
// carry_held() each port may be used by a thread of its own. Its frames arrive during transmit(),
// or at next_arrival_ns(), hence ports have no poll_fd().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpdk_io/port/capture.h"
#include "dpdk_io/port/lent_payload.h"
#include "dpdk_io/port/linked_port.h"
#include "dpdk_io/port/mbuf_frames.h"
#include "dpdk_io/port/owed_icrc.h"
#include "network/forwarding.h"
#include "network/links.h"
#include "network/switching/network.h"
#include "network/switching/report.h"

namespace rocemu::dpdk_io {

class SwitchPort;

class Switch {
 public:
  static constexpr unsigned kMaxPorts = 64;

  // `pool` is where the frames come from; it must outlive the switch. A port's queue holds
  // `queue_frames`, but never more than the pool has.
  explicit Switch(FramePool& pool, unsigned queue_frames = 2048);
  ~Switch();

  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  // Puts a network between the ports, of which there are none yet. Precondition:
  // network::problem(topology) is empty. Times of failures count from `now_ns`.
  void set_network(const network::Topology& topology, const network::NetworkSettings& settings,
                   uint64_t now_ns);
  // Reports on the network's ports; empty without a network.
  std::vector<network::PortReport> report_network(uint64_t now_ns) const;

  // The port lives as long as the switch. Throws std::runtime_error when the MAC is no unicast
  // address or is taken, or when there are kMaxPorts already, or as many as the network has hosts.
  LinkedPort& add_port(std::array<uint8_t, 6> mac, std::string name);

  // From now on nothing gets from port to port: each hands out what had arrived by `now_ns`, and
  // keeps what is transmitted, up to kMaxHeld frames. Until carry_held(), ports may be used by as
  // many threads, with no other time than this, and the switch itself by none.
  void hold(uint64_t now_ns) noexcept;
  void carry_held(uint64_t now_ns) noexcept;
  static constexpr unsigned kMaxHeld = 256;

  // From now on every frame that reaches the switch is recorded once, whatever becomes of it, with
  // the time `clock` has then. The recording is made after the impairments of the transmit
  // direction: frames that they lost are not there, duplicates are there twice, at the time and
  // with the bytes of arrival. It is before those of the receive direction. nullptr ends the
  // recording; the writer must outlive it.
  void set_capture(FrameWriter* writer, Capture::Clock clock);

  // From now on ports take frames that owe their ICRC, as long as nothing is recorded, there is no
  // network, and no link has impairments. What owes it all the same, since that has just changed,
  // is paid by `store`.
  void let_icrc_wait(StoreIcrc store) { store_icrc_ = store; }

  // From now on ports take runs (dpdk_io/port/run_mark.h), under the same conditions and as long as
  // no port wants single frames. `pool` is where their buffers come from; it must outlive the
  // switch.
  void let_runs_pass(FramePool& pool) { run_pool_ = &pool; }

  // From now on runs may lend their payload (lent_payload.h). Whoever calls this calls take_lent()
  // before memory is let go that may be lent; it copies by `take` what runs under way have lent.
  void let_payload_be_lent(TakeLent take) { take_lent_ = take; }
  // Landings end with it.
  void take_lent() noexcept;

 private:
  friend class SwitchPort;
  using Links = network::Links<MbufFrames, SwitchPort, Switch>;
  using Network = network::Network<MbufFrames, Switch>;
  friend Links;
  friend Network;

  void carry(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  void carry_slowly(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  void set_link(SwitchPort& port, impairment::Direction direction, const impairment::Spec& spec);
  bool icrc_can_wait() const noexcept {
    return store_icrc_ != nullptr && !takes_time_ && !capture_.on();
  }
  bool runs_can_pass() const noexcept {
    return icrc_can_wait() && single_frames_wanted_.load(std::memory_order_relaxed) == 0;
  }
  bool storm(const SwitchPort& port, uint64_t now_ns, bool received, bool sent) noexcept;
  void advance(uint64_t now_ns) noexcept;
  void note_next_arrival() noexcept;
  void enter(SwitchPort& from, uint64_t now_ns, rte_mbuf* frame) noexcept;
  // Called by links_.
  void arrive(SwitchPort& port, impairment::Direction direction, uint64_t now_ns,
              rte_mbuf* frame) noexcept;
  void lose(SwitchPort& port, impairment::Direction direction, impairment::Loss loss,
            rte_mbuf* frame) noexcept;
  // Called by network_.
  void deliver(uint32_t host, uint64_t now_ns, rte_mbuf* frame) noexcept;
  void lose(uint32_t port, network::NetworkLoss loss, rte_mbuf* frame) noexcept;

  FramePool& pool_;
  unsigned queue_frames_;
  std::vector<std::unique_ptr<SwitchPort>> ports_;
  network::Forwarding<MbufFrames, SwitchPort, network::Macs::configured> forwarding_;
  Links links_;
  std::unique_ptr<Network> network_;
  network::Topology topology_;  // topology of the network
  uint64_t next_arrival_ns_ = kNever;
  bool takes_time_ = false;  // links have impairments, or there is a network
  Capture capture_;
  StoreIcrc store_icrc_ = nullptr;
  FramePool* run_pool_ = nullptr;
  TakeLent take_lent_ = nullptr;
  uint64_t landing_epoch_ = 1;  // changes while no device has its turn
  // By so many. Devices that have their turns at the same time change and read it; a run that was
  // begun before the change is dropped when it is carried, or by the port that is not to have it.
  std::atomic<unsigned> single_frames_wanted_{0};
  bool holds_ = false;
};

}  // namespace rocemu::dpdk_io
