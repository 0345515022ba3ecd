#include "emulator/daemon/cm_service/cm_conversation.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "emulator/daemon/cm_service/cm_commands.h"
#include "emulator/daemon/cm_service/cm_events.h"
#include "emulator/daemon/rings/event_writer.h"

namespace rocemu::daemon {
namespace {

class PipeNotifier final : public cm::EventNotifier {
 public:
  explicit PipeNotifier(std::unique_ptr<EventWriter> pipe) : pipe_(std::move(pipe)) {}
  void notify() noexcept override { pipe_->token(); }

 private:
  std::unique_ptr<EventWriter> pipe_;
};

struct HeaderAlone {
  rocemu_header header;
};

// The message, if it is exactly a `Message`.
template <class Message>
std::optional<Message> read_as(const ReceivedMessage& received) {
  if (received.length_bytes != sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(&message, received.buffer.data(), sizeof(message));
  return message;
}

template <class Message>
void answer(const CmConversation::Reply& reply, const rocemu_header& request, Message message,
            int status) {
  message.header = request;
  message.header.length = sizeof(message);
  message.header.status = status;
  reply(std::as_bytes(std::span(&message, 1)));
}

void refuse(const CmConversation::Reply& reply, const rocemu_header& request, int status) {
  answer(reply, request, HeaderAlone{}, status);
}

}  // namespace

CmConversation::~CmConversation() {
  service_.cm().close_owner(CmService::now_ns(), owner_);
  service_.flush();
}

bool CmConversation::on_request(ReceivedMessage& message, const Reply& reply) {
  rocemu_header header;
  if (message.length_bytes < sizeof(header)) return false;
  std::memcpy(&header, message.buffer.data(), sizeof(header));
  if (header.length != message.length_bytes) return false;
  const size_t fds = header.op == ROCEMU_OP_CM_OPEN_CHANNEL ? 1 : 0;
  if (header.status != 0 || header.reserved != 0 || message.fd_count != fds) {
    refuse(reply, header, EINVAL);
    return true;
  }
  switch (header.op) {
    case ROCEMU_OP_CM_OPEN_CHANNEL:
      return open_channel(message, reply);
    case ROCEMU_OP_CM_CLOSE_CHANNEL:
      return close_channel(message, reply);
    case ROCEMU_OP_CM_COMMAND:
      return command(message, reply);
    case ROCEMU_OP_CM_NEXT_EVENT:
      return next_event(message, reply);
    default:
      return false;
  }
}

bool CmConversation::open_channel(ReceivedMessage& message, const Reply& reply) {
  const auto request = read_as<HeaderAlone>(message);
  if (!request) return false;
  auto pipe = EventWriter::open(message.fds[0]);
  if (!pipe) {
    refuse(reply, request->header, pipe.error());
    return true;
  }
  const auto channel =
      service_.cm().open_channel(owner_, std::make_unique<PipeNotifier>(std::move(*pipe)));
  if (!channel) {
    refuse(reply, request->header, channel.error());
    return true;
  }
  rocemu_cm_channel body{};
  body.channel = *channel;
  answer(reply, request->header, body, 0);
  return true;
}

bool CmConversation::close_channel(ReceivedMessage& message, const Reply& reply) {
  const auto request = read_as<rocemu_cm_channel>(message);
  if (!request) return false;
  refuse(reply, request->header,
         service_.cm().close_channel(CmService::now_ns(), owner_, request->channel));
  service_.flush();
  return true;
}

bool CmConversation::command(ReceivedMessage& message, const Reply& reply) {
  const auto request = read_as<rocemu_cm_command>(message);
  if (!request || request->in_bytes > sizeof(request->in) ||
      request->option_bytes > sizeof(request->option))
    return false;
  rocemu_cm_reply body{};
  const int status = run_cm_command(service_.cm(), CmService::now_ns(), owner_, *request, body);
  if (status != 0) {
    refuse(reply, request->header, status);
  } else {
    answer(reply, request->header, body, 0);
  }
  service_.flush();
  return true;
}

bool CmConversation::next_event(ReceivedMessage& message, const Reply& reply) {
  const auto request = read_as<rocemu_cm_channel>(message);
  if (!request) return false;
  rocemu_cm_event body{};
  if (const int status = take_event(service_.cm(), owner_, request->channel, body)) {
    refuse(reply, request->header, status);
  } else {
    answer(reply, request->header, body, 0);
  }
  return true;
}

}  // namespace rocemu::daemon
