// EthdevAttachment is a port on an Ethernet device of DPDK. There is no kernel behind it: its
// addresses are given, and it finds neighbours itself.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>

#include "dpdk_io/ethdev/ethdev_port.h"
#include "dpdk_io/ethdev/ethernet_device.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/spec/port_spec.h"
#include "emulator/daemon/attachment/attachment.h"
#include "emulator/daemon/engine/engine.h"

namespace rocemu::daemon {

class EthdevAttachment final : public Attachment {
 public:
  // `config` is the device's, with the addresses and the MAC that it has on a switch: it keeps them
  // unless `spec` and DPDK's device have others. All references outlive the attachment. Throws
  // std::runtime_error with a message for the user.
  EthdevAttachment(const dpdk_io::PortSpec& spec, const device::HcaConfig& config,
                   boost::asio::io_context& io, Engine& engine, dpdk_io::FramePool& pool);
  ~EthdevAttachment() override;

  dpdk_io::MulticastGroups* groups() override { return &groups_; }
  device::PortConfig describe(const device::PortConfig& before) override;
  void find(const device::PortConfig& port, const wire::Gid& destination,
            Answered answered) override;

  // Looks at the link; true when it has changed. Tries to connect a device that waits for its other
  // end. To be called now and then, and more often while the link is down.
  bool look();
  bool link_is_up() const { return link_is_up_; }

 private:
  // Groups keeps the joined groups for the control thread, and tells the engine all of them after
  // each change.
  class Groups final : public dpdk_io::MulticastGroups {
   public:
    explicit Groups(EthdevAttachment& attachment) : attachment_(attachment) {}
    int join(const IpAddress& group) noexcept override;
    void keep(std::span<const IpAddress> groups) noexcept override;
    size_t count() const noexcept override { return groups_.size(); }

   private:
    void tell();
    EthdevAttachment& attachment_;
    std::set<IpAddress> groups_;
  };

  void connect_again();
  void let_go();
  void stop_waiting_for_a_dead_descriptor();
  void report_conflict();

  std::string name_;
  dpdk_io::IpSettings ip_;
  boost::asio::io_context& io_;
  Engine& engine_;
  dpdk_io::EthernetDevice device_;
  dpdk_io::EthdevPort* ethdev_port_;  // owned by port_
  Groups groups_{*this};
  bool link_is_up_ = false;
  bool announced_ = false;  // since the link is up
  bool connecting_ = false;
  bool letting_go_ = false;
  std::chrono::steady_clock::time_point connect_at_{};
  std::chrono::steady_clock::time_point report_at_{};
};

}  // namespace rocemu::daemon
