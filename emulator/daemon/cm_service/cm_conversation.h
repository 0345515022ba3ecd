// One program's connection management: messages of verbs_shim/abi/cm.h in, their answers out, all
// at once. Every message is hostile input. Only the control thread uses it.
#pragma once

#include <functional>
#include <span>

#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/control/message_socket.h"
#include "verbs_shim/abi/cm.h"

namespace rocemu::daemon {

class CmConversation {
 public:
  using Reply = std::function<void(std::span<const std::byte>)>;

  explicit CmConversation(CmService& service) : service_(service), owner_(service.new_owner()) {}
  ~CmConversation();  // the program is gone, and with it all its ids
  CmConversation(const CmConversation&) = delete;
  CmConversation& operator=(const CmConversation&) = delete;

  // Answers by exactly one call of `reply`, or says false: the message is not well formed, and the
  // connection is to be closed.
  bool on_request(ReceivedMessage& message, const Reply& reply);

 private:
  bool open_channel(ReceivedMessage& message, const Reply& reply);
  bool close_channel(ReceivedMessage& message, const Reply& reply);
  bool command(ReceivedMessage& message, const Reply& reply);
  bool next_event(ReceivedMessage& message, const Reply& reply);

  CmService& service_;
  cm::OwnerId owner_;
};

}  // namespace rocemu::daemon
