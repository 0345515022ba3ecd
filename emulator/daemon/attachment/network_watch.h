// NetworkWatch tells when interfaces or addresses of the machine have changed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "dpdk_io/kernel/kernel_network.h"

namespace rocemu::daemon {

class NetworkWatch {
 public:
  // `changed` is called on the io_context's thread for every bundle of news. `network` outlives the
  // watch. Throws std::system_error.
  NetworkWatch(boost::asio::io_context& io, dpdk_io::KernelNetwork& network,
               std::function<void()> changed);

 private:
  void wait();

  dpdk_io::KernelNetwork& network_;
  std::function<void()> changed_;
  boost::asio::posix::stream_descriptor events_;
};

}  // namespace rocemu::daemon
