#include "emulator/daemon/cm_service/cm_service.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "emulator/daemon/control/device_description.h"
#include "emulator/daemon/engine/engine_clock.h"

namespace rocemu::daemon {
namespace {

// Deadlines of many connections that follow each other closely are met together.
constexpr TimeNs kShortestWaitNs = 1'000'000;

cm::Interface interface_of(const device::HcaConfig& device, bool open) {
  cm::Interface interface;
  interface.node_guid = device.node_guid;
  interface.active_mtu = static_cast<uint8_t>(ibv_mtu(device.port.mtu_bytes));
  for (const device::GidEntry& entry : device.port.gids)
    interface.addresses.push_back({entry.gid, entry.network_bits});
  interface.open = open;
  interface.scope_id = device.port.interface_index;
  return interface;
}

std::vector<cm::Interface> interfaces_of(const std::vector<device::HcaConfig>& devices,
                                         const std::vector<PathFinder*>& path_finders) {
  std::vector<cm::Interface> interfaces;
  for (const device::HcaConfig& device : devices)
    interfaces.push_back(interface_of(device, path_finders[device.index] != nullptr));
  return interfaces;
}

// Nobody can predict the kernel's generator. It also keeps a NIC from taking messages of the one
// before it for its own.
uint64_t kernel_random() {
  uint64_t number;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return number;
}

}  // namespace

CmService::CmService(boost::asio::io_context& io, Engine& engine,
                     const std::vector<device::HcaConfig>& devices,
                     device::AddressResolver& resolver, std::vector<PathFinder*> path_finders)
    : cm_(cm::Interfaces(interfaces_of(devices, path_finders)), kernel_random),
      gsi_(io, engine, devices, resolver, std::move(path_finders),
           [this](const cm::Route& route, std::span<const std::byte> mad) {
             cm_.on_mad(now_ns(), route, mad);
             flush();
           }),
      timer_(io) {}

void CmService::follow(const device::HcaConfig& device) {
  cm_.set_interface(device.index, interface_of(device, cm_.interfaces().device(device.index).open));
}

void CmService::set_lost(uint32_t device, bool lost) {
  if (!lost) return cm_.return_device(device);
  cm_.remove_device(now_ns(), device);
  flush();
}

TimeNs CmService::now_ns() { return monotonic_now_ns(); }

void CmService::flush() {
  cm::OutgoingMad mad;
  while (cm_.next_mad(mad)) outgoing_.push_back(mad);
  if (!outgoing_.empty()) gsi_.send(outgoing_);
  wait_until(cm_.next_deadline());
}

// A timer whose deadline has moved away is left running: it costs one look when it expires.
void CmService::wait_until(TimeNs deadline) {
  if (deadline >= waiting_until_) return;
  waiting_until_ = deadline;
  const TimeNs now = now_ns();
  const TimeNs wait = std::max(deadline > now ? deadline - now : 0, kShortestWaitNs);
  timer_.expires_after(std::chrono::nanoseconds(wait));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    waiting_until_ = kNever;
    cm_.on_timeout(now_ns());
    flush();
  });
}

}  // namespace rocemu::daemon
