// ControlPlane is what answers programs: their sessions, the socket that they come in by, and what
// they may ask of the whole NIC. Belongs to the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

#include "emulator/daemon/administration.h"
#include "emulator/daemon/attached_network.h"
#include "emulator/daemon/control/connection/mailbox_poller.h"
#include "emulator/daemon/control/engine_executor.h"
#include "emulator/daemon/control/listener.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/options.h"
#include "emulator/inspection/inspection.h"

namespace rocemu::daemon {

class ControlPlane {
 public:
  // Makes the socket. The NIC, which outlives it, is complete; `inspection` is nullptr when nobody
  // inspects. Throws std::exception with a message for the user.
  ControlPlane(boost::asio::io_context& io, const Nic& nic, const Options& options,
               inspection::Inspection* inspection);

  // Programs may come.
  void start() { listener_->start(); }
  // Serves them until the io_context is stopped; then every session ends.
  void run();

 private:
  boost::asio::io_context& io_;
  MailboxPoller mailbox_poller_;
  std::vector<std::unique_ptr<AttachedNetwork>> networks_;  // by device; nullptr: on the switch
  EngineExecutor executor_;
  Administration administration_;
  ProgramShares shares_{ProgramShare::Limits::of_this_process()};
  SessionHost sessions_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace rocemu::daemon
