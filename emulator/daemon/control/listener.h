// The socket that programs connect to, STATE_DIR/nic.sock, and the sessions that came from it.
// Belongs to the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include "emulator/daemon/control/session.h"

namespace rocemu::daemon {

class Listener {
 public:
  // Makes the socket, for its owner alone. A socket nobody answers at is replaced. Throws
  // std::runtime_error with a message for the user. `host` and `mailbox_poller`, which may be
  // nullptr, outlive the listener.
  Listener(boost::asio::io_context& io, const SessionHost& host, MailboxPoller* mailbox_poller,
           std::filesystem::path path, size_t max_sessions);
  ~Listener();  // removes the socket
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void start();
  // No more connections; every session ends.
  void close();

 private:
  void accept_next();
  void accept();
  bool accept_one();
  bool may_connect(const PeerCredentials& peer) const;
  void admit(UniqueFd socket);
  void forget(pid_t process);
  void pause();

  boost::asio::io_context& io_;
  const SessionHost& host_;
  MailboxPoller* mailbox_poller_;
  std::filesystem::path path_;
  size_t max_sessions_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer pause_;
  std::unordered_map<const Session*, std::shared_ptr<Session>> sessions_;
  std::unordered_map<pid_t, size_t> by_process_;  // how many of them each has
};

}  // namespace rocemu::daemon
