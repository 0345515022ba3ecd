// A DPDK Ethernet device as a port. Datagrams to one UDP port are the NIC's; what else arrives is
// the IpHost's, which answers for the port as a kernel would. On request the NIC gets that as well,
// as it lies there after the IpHost has had it.
//
// A device without a descriptor to sleep on is looked at by time: often after there was traffic,
// and after a while without every kLongestPauseNs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "base/time.h"
#include "dpdk_io/ethdev/ethernet_device.h"
#include "dpdk_io/ip_host/ip_host.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class EthdevPort final : public Port {
 public:
  struct Settings {
    IpSettings ip;
    uint16_t vlan_id = 0;  // 0: frames without a tag
    uint16_t udp_port = 0;
    unsigned longest_frame_bytes = 0;  // longer ones are dropped, whoever sends them
  };

  // A frame that comes after a pause is seen so late at most.
  static constexpr uint64_t kLongestPauseNs = 4'000'000;

  // Both outlive the port; frames are sent from `pool`.
  EthdevPort(EthernetDevice& device, const Settings& settings, FramePool& pool, uint64_t seed);

  // All calls below are the engine thread's.

  // Answers where frames for `destination` go; asks the network when need be, as IpHost does.
  IpHost::Answer resolve(uint64_t now_ns, const IpAddress& destination);
  void set_groups(uint64_t now_ns, std::set<IpAddress> groups);
  void on_link_up(uint64_t now_ns);
  // The device is left alone (while it is restarted, say); what is sent meanwhile is lost.
  void pause() noexcept { usable_ = more_waits_ = false; }
  void resume() noexcept { usable_ = device_.started(); }
  IpHost& host() noexcept { return host_; }

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override { return device_.receive_fd(); }
  bool has_work() const noexcept override { return more_waits_; }
  uint64_t next_arrival_ns() const noexcept override;
  const PortStats& stats() const noexcept override { return stats_; }
  void want_other_frames(bool wanted) noexcept override { wants_others_ = wanted; }

 private:
  bool take_in(uint64_t now_ns, rte_mbuf* frame);
  unsigned hand_over(std::span<rte_mbuf*> burst) noexcept;
  unsigned hand_over_tagged(std::span<rte_mbuf*> burst) noexcept;
  void run_host(uint64_t now_ns);
  void send_own(const Frame& frame) noexcept;
  void drop(rte_mbuf* frame, DropReason reason) noexcept;

  EthernetDevice& device_;
  FramePool& pool_;
  uint16_t vlan_id_;
  uint16_t udp_port_;
  unsigned longest_frame_bytes_;
  unsigned longest_sent_bytes_;  // of those, what the driver takes
  IpHost host_;
  bool usable_;
  bool wants_others_ = false;
  bool more_waits_ = false;
  uint64_t last_traffic_ns_ = 0;
  uint64_t next_look_ns_ = kNever;
  uint64_t stuck_since_ns_ = kNever;
  PortStats stats_;
};

}  // namespace rocemu::dpdk_io
