// PathFinder finds where frames for an address go on a device's port. The answer may have to wait
// for ARP or neighbour discovery; the control thread does not, and serves others meanwhile.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "emulator/daemon/attachment/attachment.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

class PathFinder {
 public:
  // Found is called once on the control thread, at once or later, with 0 and the MAC, or with
  // EHOSTUNREACH.
  using Found = std::function<void(int error, const MacAddress& mac)>;

  // All outlive the calls under way; `port` is the device's state, which may change.
  PathFinder(boost::asio::io_context& io, Attachment& attachment, const device::PortConfig& port)
      : io_(io), attachment_(attachment), port_(port) {}

  // Asks, and waits for an answer as long as Linux would (kPatience).
  void find(const wire::Gid& destination, Found found);
  // Answers from what is known already, and asks nobody.
  void look_once(const wire::Gid& destination, Found found);
  LearnedAddresses& learned() { return attachment_.learned(); }

 private:
  struct Search;
  void look(std::shared_ptr<Search> search);
  void go_on(std::shared_ptr<Search> search, const Attachment::Answer& answer);

  boost::asio::io_context& io_;
  Attachment& attachment_;
  const device::PortConfig& port_;
};

}  // namespace rocemu::daemon
