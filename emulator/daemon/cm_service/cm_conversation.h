// One program's connection management: its channels, commands and events, whose ids belong to it.
// The control thread makes the calls. Whatever a command holds is hostile input.
#pragma once

#include <memory>

#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/control/session_host.h"

namespace rocemu::daemon {

class CmConversation final : public CmProgram {
 public:
  CmConversation(CmService& service, pid_t program)
      : service_(service), owner_(service.new_owner(program)) {}
  ~CmConversation() override;  // the program is gone, and with it all its ids
  CmConversation(const CmConversation&) = delete;
  CmConversation& operator=(const CmConversation&) = delete;

  device::Result<uint32_t> open_channel(std::unique_ptr<EventWriter> pipe) override;
  int close_channel(uint32_t channel) override;
  int command(const rocemu_cm_command& command, rocemu_cm_reply& reply) override;
  int next_event(uint32_t channel, rocemu_cm_event& event) override;
  void flush() override { service_.flush(); }

 private:
  CmService& service_;
  cm::OwnerId owner_;
};

}  // namespace rocemu::daemon
