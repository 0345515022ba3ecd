// One program's connection to the control plane, as a conversation: a request comes in, is
// answered, and only then is the next one read. So a connection holds at most one request, one call
// to the engine and one reply, whatever the program sends.
//
// The process that opened the connection is watched, too: when it ends, the connection ends,
// although a child may still hold the socket. Belongs to the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <span>
#include <vector>

#include "emulator/daemon/control/connection/mailbox_poller.h"
#include "emulator/daemon/control/connection/mailbox_server.h"
#include "emulator/daemon/control/connection/message_socket.h"

namespace rocemu::daemon {

class ProgramConnection : public std::enable_shared_from_this<ProgramConnection> {
 public:
  // `mailbox_poller` outlives it; nullptr: no mailbox is looked at.
  ProgramConnection(boost::asio::io_context& io, UniqueFd socket,
                    const PeerCredentials& credentials, MailboxPoller* mailbox_poller = nullptr);
  virtual ~ProgramConnection() = default;
  ProgramConnection(const ProgramConnection&) = delete;
  ProgramConnection& operator=(const ProgramConnection&) = delete;

  void start();

  // These are for MailboxPoller, and not while a request is being answered. They serve a request
  // that is there, or find the connection ended; false: there is nothing.
  bool look_at_mailbox();
  bool look_at_socket();
  void set_attended(bool attended);
  // From now on the kernel says when there is something.
  void wait();
  // From now on nothing is read or sent; on_end() is called, once. The object lives until calls
  // under way have returned.
  void end();
  bool ended() const { return ended_; }

 protected:
  const PeerCredentials& credentials() const { return credentials_; }

  // A request came, to be answered by exactly one reply(), now or later. The message is valid until
  // this returns.
  virtual void on_request(ReceivedMessage& message) = 0;
  virtual void on_end() = 0;
  // The reply has been handed to the kernel, and the next request may come.
  virtual void on_replied() {}

  // Makes a page by which requests may come, too, instead of one that there was; the program is to
  // be given it. Throws std::system_error.
  UniqueFd add_mailbox();

  // Never ends the connection before it returns, though the program may be gone: the caller still
  // uses what on_end() takes away.
  void reply(std::span<const std::byte> bytes, std::span<const int> fds);

 private:
  void end_soon();
  void replied();
  void keep_for_later(std::span<const std::byte> bytes, std::span<const int> fds);
  void wait_for_room();
  void send_kept();
  void watch_peer();

  boost::asio::io_context& io_;
  MailboxPoller* mailbox_poller_;
  PeerCredentials credentials_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::posix::stream_descriptor process_;
  std::unique_ptr<ReceivedMessage> message_;
  std::unique_ptr<MailboxServer> mailbox_;  // may be none
  bool asked_by_mailbox_ = false;
  std::vector<std::byte> pending_reply_;
  std::vector<UniqueFd> pending_fds_;
  bool ended_ = false;
};

}  // namespace rocemu::daemon
