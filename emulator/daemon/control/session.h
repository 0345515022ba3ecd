// A connection that speaks verbs_shim/abi/control.h: a SessionCore, and the socket and mailbox of
// the program that it serves.
#pragma once

#include <spdlog/spdlog.h>

#include <functional>
#include <memory>

#include "emulator/daemon/control/connection/program_connection.h"
#include "emulator/daemon/control/session_core.h"

namespace rocemu::daemon {

class Session final : public ProgramConnection, private SessionPeer {
 public:
  using Ended = std::function<void(Session&)>;

  // `host` and `mailbox_poller`, which may be nullptr, outlive the session; `ended` is called when
  // nothing of it is left.
  Session(boost::asio::io_context& io, const SessionHost& host, MailboxPoller* mailbox_poller,
          UniqueFd socket, const PeerCredentials& credentials, Ended ended)
      : ProgramConnection(io, std::move(socket), credentials, mailbox_poller),
        host_(host),
        ended_callback_(std::move(ended)),
        core_(host, *this) {}

 private:
  void on_request(ReceivedMessage& message) override { core_.on_request(message); }
  void on_replied() override { core_.on_replied(); }
  void on_end() override { core_.on_end(); }

  pid_t pid() const override { return credentials().pid; }
  std::unique_ptr<dma::AddressSpace> reach_memory(UniqueFd mem, uint64_t probe_address,
                                                  uint64_t probe_value) override {
    return dma::AddressSpace::probe(pid(), mem.release(), probe_address, probe_value, host_.dma);
  }
  UniqueFd add_mailbox() override { return ProgramConnection::add_mailbox(); }
  void reply(std::span<const std::byte> bytes, std::span<const int> fds) override {
    ProgramConnection::reply(bytes, fds);
  }
  void close(const char* why) override {
    spdlog::warn("process {}: {}; closing", pid(), why);
    end();
  }
  std::shared_ptr<void> hold() override { return shared_from_this(); }
  void finished() override { ended_callback_(*this); }

  const SessionHost& host_;
  Ended ended_callback_;
  SessionCore core_;
};

}  // namespace rocemu::daemon
