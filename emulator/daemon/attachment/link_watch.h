// LinkWatch looks at the links of ports on devices of DPDK, which have nothing that would tell of
// them: ten times a second while one is down, so that it is soon seen up, else once a second.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <vector>

#include "emulator/daemon/attachment/ethdev_attachment.h"

namespace rocemu::daemon {

class LinkWatch {
 public:
  // `changed` is called on the io_context's thread after one of the links has. The attachments
  // outlive the watch.
  LinkWatch(boost::asio::io_context& io, std::vector<EthdevAttachment*> attachments,
            std::function<void()> changed);

 private:
  void look();

  std::vector<EthdevAttachment*> attachments_;
  std::function<void()> changed_;
  boost::asio::steady_timer timer_;
};

}  // namespace rocemu::daemon
