// FaultInjector makes faults happen. It is told of faults by administration, looks after their
// times on the control thread, lets each device's DeviceFaults do its part on the engine thread,
// and stands before programs' calls.
//
// Without faults nothing of it is in anybody's way: no tap, no port, no look at a clock.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/daemon/control/session_host.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/faults/armed_faults.h"
#include "emulator/daemon/faults/device_faults.h"
#include "emulator/daemon/faults/fault_source.h"
#include "emulator/daemon/faults/program_names.h"

namespace rocemu::daemon {

class FaultInjector final : public OperationGate, private FaultSource {
 public:
  // Called on the control thread: what a port shows may have changed.
  using ShowPort = std::function<void(uint32_t device)>;
  // The same for the connection manager: the device is lost, or it is there.
  using TellLoss = std::function<void(uint32_t device, bool lost)>;

  // `io` and `engine` outlive it. Devices are the engine's, and all there already.
  FaultInjector(boost::asio::io_context& io, Engine& engine,
                const std::vector<device::HcaConfig>& devices, TimeNs nic_began_ns,
                ShowPort show_port, TellLoss tell_loss);
  ~FaultInjector() override;

  // The control thread. EINVAL: the text is wrong; ENODEV: there is no such device; ENOSPC: there
  // are ArmedFaults::kMax. Answers their ids.
  device::Result<std::vector<uint32_t>> add(const std::string& text);
  // 0: all. ENOENT: there is none of that id.
  int clear(uint32_t id);
  std::string report() const;  // JSON
  device::PortConfig seen(uint32_t device, const device::PortConfig& port) const;

  // OperationGate
  bool open() const override { return !gate_needed_.load(std::memory_order_relaxed); }
  Verdict on_operation(const Asked& asked) override;
  void wait(TimeNs delay_ns, std::function<void()> go_on) override;
  void passed(const Asked& asked) override;
  PostVerdict on_post(const Asked& asked, wire::Qpn qpn, bool receive) override;

 private:
  // FaultSource
  TimeNs now_ns() const override;
  std::optional<fault::What> strike(fault::Kind kind, const Who& who,
                                    const ArmedFaults::About& about) override;
  bool active(fault::Kind kind, const Who& who) const override;
  std::optional<transport::WcStatus> on_request(const Who& who) override;
  void on_packet(const Who& who) override;
  void show_at(uint32_t device, TimeNs when_ns) override;
  void send_at(const LateEvent& event, TimeNs when_ns) override;

  void on_control(std::function<void()> work);
  void run_at(TimeNs when_ns, std::function<void()> work);
  void advance();
  void carry_out(const std::vector<FaultChange>& changes);
  void follow();
  void tell_losses(const std::vector<FaultChange>& changes);

  boost::asio::io_context& io_;
  Engine& engine_;
  ShowPort show_port_;
  TellLoss tell_loss_;
  ProgramNames names_;
  ArmedFaults armed_;
  std::vector<std::unique_ptr<DeviceFaults>> devices_;  // the engine thread's
  std::vector<std::atomic<device::ContextId>> last_lost_;
  std::atomic<bool> gate_needed_{false};
  boost::asio::steady_timer timer_;
  // Held by what waits on the control thread's clock, which may come after this object has gone.
  std::shared_ptr<FaultInjector*> self_;
};

}  // namespace rocemu::daemon
