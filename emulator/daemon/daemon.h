// Puts the parts of rocemud together and runs them: DPDK, switch, devices, engine thread, sysfs
// tree, and on the calling thread the control plane.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "dpdk_io/eal/eal.h"
#include "dpdk_io/kernel/kernel_network.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/pcap.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/attachment/attachment.h"
#include "emulator/daemon/attachment/gid_directory.h"
#include "emulator/daemon/attachment/link_watch.h"
#include "emulator/daemon/attachment/network_watch.h"
#include "emulator/daemon/attachment/path_finder.h"
#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/control/listener.h"
#include "emulator/daemon/control/mailbox_poller.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/options.h"
#include "emulator/daemon/view/status.h"
#include "emulator/daemon/view/sysfs_tree.h"

namespace rocemu::daemon {

class Daemon {
 public:
  // Programs can open devices afterwards. Throws std::exception with a message for the user.
  explicit Daemon(const Options& options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Returns after SIGTERM, SIGINT or ROCEMU_OP_SHUTDOWN.
  void run();

 private:
  void attach(const dpdk_io::PortAssignment& assignment);
  std::unique_ptr<Attachment> open(const dpdk_io::PortSpec& spec, const device::HcaConfig& device);
  void add_device(const device::HcaConfig& config, transport::TransportLimits limits);
  void follow_network();
  void refresh_counters();
  void leave_groups(const Snapshot& snapshot);
  void write_counters(const Snapshot& snapshot);

  // In the order they depend on each other: the engine goes before the io_context its answers are
  // posted to, and the frames before the pool.
  dpdk_io::Eal eal_;
  dpdk_io::FramePool pool_;
  std::unique_ptr<dpdk_io::PcapWriter> capture_;
  dpdk_io::Switch switch_;
  std::unique_ptr<dpdk_io::KernelNetwork> network_;  // when a port is on it
  GidDirectory gids_;
  boost::asio::io_context io_;
  MailboxPoller mailbox_poller_;
  std::vector<std::unique_ptr<Attachment>> attachments_;  // by device; nullptr: on the switch
  Engine engine_;
  Nic nic_;
  std::unique_ptr<CmService> cm_;
  std::vector<std::unique_ptr<PathFinder>> path_finders_;
  std::unique_ptr<SysfsTree> sysfs_;
  std::unique_ptr<Listener> listener_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer counter_timer_;
  std::unique_ptr<NetworkWatch> network_watch_;
  std::vector<EthdevAttachment*> ethdevs_;  // of attachments_
  std::unique_ptr<LinkWatch> link_watch_;
  std::vector<uint64_t> frames_shown_;  // by device, as of the last write to sysfs
};

}  // namespace rocemu::daemon
