// Finds where frames for an address go on a device's port. The answer may have to wait for ARP or
// neighbour discovery; the control thread does not: others are served meanwhile.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "emulator/daemon/attachment/attachment.h"
#include "emulator/device/attributes.h"

namespace rocemu::daemon {

class PathFinder {
 public:
  // Called once on the control thread, at once or later: 0 and the MAC, or EHOSTUNREACH.
  using Found = std::function<void(int error, const wire::MacAddress& mac)>;

  // All outlive the calls under way; `port` is the device's, which may change.
  PathFinder(boost::asio::io_context& io, Attachment& attachment, const device::PortConfig& port)
      : io_(io), attachment_(attachment), port_(port) {}

  // Waits for at most kPatience.
  void find(const wire::Gid& destination, Found found);
  // What is known already: asks nobody.
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
