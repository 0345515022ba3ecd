#include "emulator/daemon/attachment/link_watch.h"

#include <chrono>
#include <utility>

namespace rocemu::daemon {
namespace {

constexpr std::chrono::milliseconds kPeriodUp{1000};
constexpr std::chrono::milliseconds kPeriodDown{100};

}  // namespace

LinkWatch::LinkWatch(boost::asio::io_context& io, std::vector<EthdevAttachment*> attachments,
                     std::function<void()> changed)
    : attachments_(std::move(attachments)), changed_(std::move(changed)), timer_(io) {
  look();
}

void LinkWatch::look() {
  bool any_changed = false;
  bool all_up = true;
  for (EthdevAttachment* attachment : attachments_) {
    any_changed |= attachment->look();
    all_up = all_up && attachment->link_is_up();
  }
  if (any_changed) changed_();
  timer_.expires_after(all_up ? kPeriodUp : kPeriodDown);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) look();
  });
}

}  // namespace rocemu::daemon
