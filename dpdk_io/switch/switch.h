// An Ethernet switch inside the process, without copies: a frame's buffer goes from the port that
// transmits it to the queue of the port that has its destination MAC. The MACs are configured, not
// learned.
//
//   - unicast goes to the port with that MAC, the sender itself included (a device that talks to
//     itself); to a MAC nobody has, it is dropped and counted at the sender;
//   - broadcast and multicast go to all other ports, as one buffer with several references;
//   - each port's receive queue is bounded; what does not fit is dropped and counted at the
//   receiver.
//
// Each direction of a port's link can have impairments: transmit is from the port to the switch,
// receive from the switch to the port. A frame that arrives later waits in a queue, ordered by
// time, that is as long as the pool; every receive() and transmit() of any port moves on what is
// due by then.
//
// One thread drives the switch and all its ports, so nothing is locked; but between hold() and
// carry_held() each port may be used by a thread of its own. Its frames arrive during transmit(),
// or at next_arrival_ns(), hence ports have no poll_fd().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/frames_in_flight.h"
#include "dpdk_io/port/linked_port.h"

namespace rocemu::dpdk_io {

class PcapWriter;
class SwitchPort;

class Switch {
 public:
  static constexpr unsigned kMaxPorts = 64;

  using Clock = std::function<uint64_t()>;  // nanoseconds since the epoch

  // `pool` is where the frames come from; it must outlive the switch. A port's queue holds
  // `queue_frames`, but never more than the pool has.
  explicit Switch(FramePool& pool, unsigned queue_frames = 2048);
  ~Switch();

  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  // The port lives as long as the switch. Throws std::runtime_error when the MAC is no unicast
  // address or is taken, or when there are kMaxPorts already.
  LinkedPort& add_port(std::array<uint8_t, 6> mac, std::string name);

  // From now on nothing gets from port to port: each hands out what had arrived by `now_ns`, and
  // keeps what is transmitted, up to kMaxHeld frames. Until carry_held(), ports may be used by as
  // many threads, with no other time than this, and the switch itself by none.
  void hold(uint64_t now_ns) noexcept;
  void carry_held(uint64_t now_ns) noexcept;
  static constexpr unsigned kMaxHeld = 256;

  // Ports count from 0 in the order in which they were added. A spec without impairments ends them.
  // Frames under way keep their time of arrival. Takes memory; may throw std::bad_alloc.
  void set_link(unsigned port, impairment::Direction direction, const impairment::Spec& spec);
  LinkReport link(unsigned port, impairment::Direction direction) const;

  // From now on every frame that reaches the switch is recorded once, whatever becomes of it, with
  // the time `clock` has then. That is after the impairments of the transmit direction: what they
  // lost is not there, duplicates are there twice, at the time and with the bytes of arrival. It is
  // before those of the receive direction. nullptr ends the recording; the writer must outlive it.
  void set_capture(PcapWriter* writer, Clock clock);

 private:
  friend class SwitchPort;

  void carry(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  template <class Deliver>
  void forward(SwitchPort& from, rte_mbuf* frame, Deliver deliver) noexcept;
  template <class Deliver>
  void flood(SwitchPort& from, rte_mbuf* frame, Deliver deliver) noexcept;
  void record(std::span<rte_mbuf*> burst) noexcept;
  SwitchPort* find(uint64_t mac) noexcept;

  void carry_impaired(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  void travel(SwitchPort& port, impairment::Direction direction, uint64_t now_ns,
              rte_mbuf* frame) noexcept;
  void arrive(SwitchPort& port, impairment::Direction direction, uint64_t now_ns,
              rte_mbuf* frame) noexcept;
  void enter(SwitchPort& from, uint64_t now_ns, rte_mbuf* frame) noexcept;
  void arrive_due(uint64_t now_ns) noexcept;

  unsigned queue_frames_;
  std::vector<uint64_t> macs_;  // of ports_, same order: searched for every change of destination
  std::vector<std::unique_ptr<SwitchPort>> ports_;
  uint64_t last_mac_ = 0;  // of the last frame carried; no port has MAC 0
  SwitchPort* last_port_ = nullptr;
  FramesInFlight in_flight_;
  unsigned pool_frames_;
  unsigned impaired_links_ = 0;
  bool holds_ = false;
  PcapWriter* capture_ = nullptr;
  Clock capture_clock_;
};

}  // namespace rocemu::dpdk_io
