// Daemon puts the parts of rocemud together and runs them: DPDK, switch, devices, engine thread,
// sysfs tree, and on the calling thread the control plane.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "dpdk_io/eal/eal.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/pcap.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/administration.h"
#include "emulator/daemon/attached_network.h"
#include "emulator/daemon/attachment/attachments.h"
#include "emulator/daemon/attachment/gid_directory.h"
#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/control/connection/mailbox_poller.h"
#include "emulator/daemon/control/engine_executor.h"
#include "emulator/daemon/control/listener.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/faults/fault_injector.h"
#include "emulator/daemon/move_watchdog.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/options.h"
#include "emulator/daemon/shaking/nic_shaking.h"
#include "emulator/daemon/view/sysfs_tree.h"
#include "emulator/inspection/inspection.h"

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
  void set_up_capture(const std::filesystem::path& path, std::optional<uint64_t> limit_mb);
  void set_up_devices(const Options& options);
  void attach(const dpdk_io::PortAssignment& assignment);
  void add_device(const device::HcaConfig& config, transport::TransportLimits limits);
  void add_to_engine(const device::HcaConfig& config, const transport::TransportLimits& limits,
                     device::AddressResolver& resolver, bool on_switch);
  void set_up_shaking(const Options& options);
  transport::TransportLimits limits_of(const device::HcaConfig& config, const Options& options,
                                       size_t host) const;
  void set_up_control(const Options& options);
  void set_up_faults();
  void follow_network();
  void show_port(uint32_t device);
  void refresh_counters();
  void leave_groups(const EngineSnapshot& snapshot);
  void write_counters(const EngineSnapshot& snapshot);

  // The members stand in the order in which they depend on each other: the engine goes before the
  // io_context that its answers are posted to, and the frames before the pool.
  dpdk_io::Eal eal_;
  dpdk_io::FramePool pool_;
  std::unique_ptr<dpdk_io::PcapWriter> capture_;
  dpdk_io::Switch switch_;
  GidDirectory gids_;
  boost::asio::io_context io_;
  MailboxPoller mailbox_poller_;
  Attachments attachments_;
  std::unique_ptr<inspection::Inspection> inspection_;  // nullptr: not asked for
  std::unique_ptr<NicShaking> shaking_;                 // nullptr: the NIC is not shaken
  Engine engine_;
  MoveWatchdog move_watchdog_;
  Nic nic_;
  std::unique_ptr<CmService> cm_;
  std::vector<device::PortConfig> ports_;  // by device, as they are without faults
  std::unique_ptr<FaultInjector> faults_;
  std::vector<std::unique_ptr<AttachedNetwork>> networks_;  // by device; nullptr: on the switch
  EngineExecutor executor_;
  Administration administration_;
  ProgramShares shares_{ProgramShare::Limits::of_this_process()};
  SessionHost sessions_;
  std::unique_ptr<SysfsTree> sysfs_;
  std::unique_ptr<Listener> listener_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer counter_timer_;
};

}  // namespace rocemu::daemon
