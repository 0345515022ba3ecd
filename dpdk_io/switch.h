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
// Single threaded: one engine thread drives the switch and all its ports, so nothing is locked. Its
// frames arrive during transmit(), hence ports have no poll_fd().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpdk_io/frame_pool.h"
#include "dpdk_io/port.h"

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
  Port& add_port(std::array<uint8_t, 6> mac, std::string name);

  // From now on every frame that a port transmits is recorded once, whatever becomes of it, with
  // the time `clock` has at its burst. nullptr ends that. The writer must outlive the recording.
  void set_capture(PcapWriter* writer, Clock clock);

 private:
  friend class SwitchPort;

  void carry(SwitchPort& from, std::span<rte_mbuf*> burst) noexcept;
  void forward(SwitchPort& from, rte_mbuf* frame) noexcept;
  void flood(SwitchPort& from, rte_mbuf* frame) noexcept;
  void record(std::span<rte_mbuf*> burst) noexcept;
  SwitchPort* find(uint64_t mac) noexcept;

  unsigned queue_frames_;
  std::vector<uint64_t> macs_;  // of ports_, same order: searched for every change of destination
  std::vector<std::unique_ptr<SwitchPort>> ports_;
  uint64_t last_mac_ = 0;  // of the last frame carried; no port has MAC 0
  SwitchPort* last_port_ = nullptr;
  PcapWriter* capture_ = nullptr;
  Clock capture_clock_;
};

}  // namespace rocemu::dpdk_io
