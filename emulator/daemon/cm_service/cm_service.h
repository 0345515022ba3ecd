// Connection management for all programs of this NIC: joins the sans-IO cm::RdmaCm to the clock and
// to QP1 of the devices. Only the control thread uses it.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>
#include <vector>

#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "emulator/daemon/cm_service/gsi.h"

namespace rocemu::daemon {

class CmService {
 public:
  // The arguments are those of Gsi, and all that is given outlives this.
  CmService(boost::asio::io_context& io, Engine& engine,
            const std::vector<device::HcaConfig>& devices, device::AddressResolver& resolver,
            std::vector<PathFinder*> path_finders);

  cm::RdmaCm& cm() { return cm_; }
  const cm::RdmaCm& cm() const { return cm_; }
  // Makes an owner for a connection of process `program`; 0: the process is not known.
  cm::OwnerId new_owner(pid_t program) {
    cm_.set_program(++last_owner_, static_cast<cm::ProgramId>(program));
    return last_owner_;
  }
  static TimeNs now_ns();
  void watch_mads(Gsi::Watch watch) { gsi_.watch(std::move(watch)); }

  // The device's addresses or MTU have changed.
  void follow(const device::HcaConfig& device);
  // The device is lost, or back.
  void set_lost(uint32_t device, bool lost);
  // Has to be called after calls of cm(): sends the MADs they made and waits for the next deadline.
  void flush();

 private:
  void wait_until(TimeNs deadline);

  cm::RdmaCm cm_;
  Gsi gsi_;
  boost::asio::steady_timer timer_;
  TimeNs waiting_until_ = kNever;
  std::vector<cm::OutgoingMad> outgoing_;
  cm::OwnerId last_owner_ = 0;
};

}  // namespace rocemu::daemon
