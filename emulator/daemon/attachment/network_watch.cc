#include "emulator/daemon/attachment/network_watch.h"

#include <fcntl.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace rocemu::daemon {
namespace {

int duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw std::system_error(errno, std::generic_category(), "netlink socket");
  return copy;
}

}  // namespace

NetworkWatch::NetworkWatch(boost::asio::io_context& io, dpdk_io::KernelNetwork& network,
                           std::function<void()> changed)
    : network_(network), changed_(std::move(changed)), events_(io, duplicate(network.events_fd())) {
  wait();
}

void NetworkWatch::wait() {
  events_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (error) return;
                       if (network_.drain_events()) changed_();
                       wait();
                     });
}

}  // namespace rocemu::daemon
