// Daemon puts the parts of rocemud together and runs them: DPDK, switch, devices, engine thread,
// sysfs tree, and on the calling thread the control plane.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>

#include "emulator/daemon/administration.h"
#include "emulator/daemon/attachment/attachments.h"
#include "emulator/daemon/attachment/gid_directory.h"
#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/control_plane.h"
#include "emulator/daemon/dpdk_switch.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/faults/fault_injector.h"
#include "emulator/daemon/metrics/metrics_server.h"
#include "emulator/daemon/move_watchdog.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/options.h"
#include "emulator/daemon/shaking/nic_shaking.h"
#include "emulator/daemon/shown_ports.h"
#include "emulator/daemon/tracing/capture_comments.h"
#include "emulator/daemon/tracing/nic_tracing.h"
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
  void set_up_devices(const Options& options);
  void attach(const dpdk_io::PortAssignment& assignment, const Options& options);
  void add_device(const device::HcaConfig& config, transport::TransportLimits limits);
  void add_to_engine(const device::HcaConfig& config, const transport::TransportLimits& limits,
                     device::AddressResolver& resolver, bool on_switch);
  void set_up_shaking(const Options& options);
  transport::TransportLimits limits_of(const device::HcaConfig& config, const Options& options,
                                       size_t host) const;
  void set_up_services(const Options& options);
  void serve_metrics(const MetricsAddress& address);
  void set_up_tracing(const Options& options);

  // The members stand in the order in which they depend on each other: the engine goes before the
  // io_context that its answers are posted to, and the frames before the pool.
  DpdkSwitch dpdk_switch_;
  GidDirectory gids_;
  boost::asio::io_context io_;
  Attachments attachments_;
  std::unique_ptr<inspection::Inspection> inspection_;  // nullptr: not asked for
  std::unique_ptr<NicShaking> shaking_;                 // nullptr: the NIC is not shaken
  Engine engine_;
  MoveWatchdog move_watchdog_;
  Nic nic_;
  std::unique_ptr<CaptureComments> comments_;  // nullptr: no capture has comments
  std::unique_ptr<NicTracing> tracing_;
  std::unique_ptr<CmService> cm_;
  std::unique_ptr<FaultInjector> faults_;
  std::unique_ptr<ControlPlane> control_;
  std::unique_ptr<ShownPorts> shown_ports_;
  Administration administration_;
  std::unique_ptr<MetricsServer> metrics_;  // nullptr: not asked for
  boost::asio::signal_set signals_;
};

}  // namespace rocemu::daemon
