#include "emulator/daemon/cm_service/cm_conversation.h"

#include <utility>

#include "emulator/daemon/cm_service/cm_commands.h"
#include "emulator/daemon/cm_service/cm_events.h"

namespace rocemu::daemon {
namespace {

class PipeNotifier final : public cm::EventNotifier {
 public:
  explicit PipeNotifier(std::unique_ptr<EventWriter> pipe) : pipe_(std::move(pipe)) {}
  void notify() noexcept override { pipe_->token(); }
  uint32_t take_back(uint32_t count) noexcept override { return pipe_->take_back(count); }

 private:
  std::unique_ptr<EventWriter> pipe_;
};

}  // namespace

CmConversation::~CmConversation() {
  service_.cm().close_owner(CmService::now_ns(), owner_);
  service_.flush();
}

device::Result<uint32_t> CmConversation::open_channel(std::unique_ptr<EventWriter> pipe) {
  const auto channel =
      service_.cm().open_channel(owner_, std::make_unique<PipeNotifier>(std::move(pipe)));
  if (!channel) return tl::unexpected(channel.error());
  return *channel;
}

int CmConversation::close_channel(uint32_t channel) {
  return service_.cm().close_channel(CmService::now_ns(), owner_, channel);
}

int CmConversation::command(const rocemu_cm_command& command, rocemu_cm_reply& reply) {
  return run_cm_command(service_.cm(), CmService::now_ns(), owner_, command, reply);
}

int CmConversation::next_event(uint32_t channel, rocemu_cm_event& event) {
  return take_event(service_.cm(), owner_, channel, event);
}

}  // namespace rocemu::daemon
