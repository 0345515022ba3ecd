// An Ethernet device of DPDK, a virtual one or a NIC on the PCI bus: made or found, set up with one
// queue in each direction, started, and removed in the end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/net/mac_address.h"
#include "dpdk_io/ethdev/removal_notice.h"
#include "dpdk_io/port/frame_pool.h"

namespace rocemu::dpdk_io {

struct EthernetDeviceRequest {
  enum class Bus { vdev, pci };
  Bus bus = Bus::vdev;
  std::string arguments;   // as DPDK has them: the device's name, then ",key=value" for each
  unsigned mtu_bytes = 0;  // MTU of the link; 0: the largest that the device takes and RoCE can use
  MacAddress mac{};        // for a device that has none of its own
};

// Setting up and taking down is one thread's. let_in(), receive() and transmit() are another's,
// which does not call them while restart() or give_back() runs.
class EthernetDevice {
 public:
  // Each device has a pool of its own for what it receives, with buffers as large as any driver
  // asks for, since longer frames would come in pieces. It takes so much of DPDK's memory.
  static constexpr unsigned kMemoryMb = 48;

  // Needs an Eal that has the device's bus. Throws std::runtime_error with a message that says what
  // to do.
  explicit EthernetDevice(const EthernetDeviceRequest& request);
  ~EthernetDevice();
  EthernetDevice(const EthernetDevice&) = delete;
  EthernetDevice& operator=(const EthernetDevice&) = delete;

  const MacAddress& mac() const noexcept { return mac_; }
  unsigned mtu_bytes() const noexcept { return mtu_bytes_; }
  // A longer frame would keep those behind it from being sent.
  unsigned longest_sent_bytes() const noexcept { return longest_sent_bytes_; }
  // So many frames of the longest kind wait for receive() without loss.
  unsigned receive_capacity() const noexcept { return receive_capacity_; }
  // Polls readable when there is something to receive; -1: the driver has none, or one that would
  // have to be armed each time.
  int receive_fd() const noexcept { return receive_fd_; }

  bool link_is_up() const noexcept;

  // Frames to these groups come in; others may.
  void let_in(std::span<const MacAddress> groups) noexcept;

  // False while a device waits for its other end to be there, as a memif client does for its
  // server. Then, and when the link of such a device has gone, restart() is worth trying.
  bool started() const noexcept { return started_; }
  bool connects() const noexcept { return connects_; }
  void restart() noexcept;

  // True when the kernel waits for a NIC on the PCI bus to be let go of, which give_back() does for
  // good: the device is as if its link were down. receive() and transmit() are not called any more.
  bool is_wanted_back() const noexcept { return found_ && notice_ && notice_->given(); }
  void give_back() noexcept;

  // These do what rte_eth_rx_burst and rte_eth_tx_burst do. Precondition: started().
  unsigned receive(std::span<rte_mbuf*> burst) noexcept;
  unsigned transmit(std::span<rte_mbuf*> burst) noexcept;

 private:
  class Setup;

  void find(Setup& setup, EthernetDeviceRequest::Bus bus);
  void configure(Setup& setup, EthernetDeviceRequest::Bus bus);
  void choose_mtu(unsigned wanted_bytes);
  void choose_mac(const MacAddress& otherwise);
  void start(Setup& setup);
  void wait_for_link() const noexcept;
  void remove() noexcept;

  std::string arguments_;
  std::string name_;
  bool connects_;
  uint16_t port_ = 0;
  bool found_ = false;
  bool started_ = false;
  std::unique_ptr<FramePool> pool_;
  MacAddress mac_{};
  unsigned mtu_bytes_ = 0;
  unsigned longest_sent_bytes_ = 0;
  unsigned receive_capacity_ = 0;
  int receive_fd_ = -1;
  std::unique_ptr<RemovalNotice> notice_;
  mutable std::mutex commands_;  // drivers give a NIC one command at a time, of whichever thread
  bool filters_groups_ = true;
};

}  // namespace rocemu::dpdk_io
