// Connections whose mailboxes the control thread looks at. A program mostly asks for several things
// in a row, and being woken for each costs more than most of them do. So after an answer the
// control thread stays awake for a while, and looks. Belongs to the control thread.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>

namespace rocemu::daemon {

class ProgramConnection;

class MailboxPoller {
 public:
  MailboxPoller() = default;
  MailboxPoller(const MailboxPoller&) = delete;
  MailboxPoller& operator=(const MailboxPoller&) = delete;

  // Runs `io` until it is stopped. What finds no memory is given up, and the rest goes on.
  void run(boost::asio::io_context& io);

  // Looks at this connection until it has a request, has ended, is let go or makes room for a later
  // one.
  void keep(std::shared_ptr<ProgramConnection> connection);
  // Serves one request of each; false: there was none.
  bool look();
  // From now on the kernel says what comes.
  void let_go();

 private:
  void serve(boost::asio::io_context& io);

  static constexpr size_t kMax = 16;
  // A request that cannot come by a mailbox is rare, and costs a system call to look for.
  static constexpr unsigned kLooksPerSocket = 32;

  using Kept = std::array<std::shared_ptr<ProgramConnection>, kMax>;

  Kept kept_;  // the first kept_count_ are there, the oldest first
  size_t kept_count_ = 0;
  unsigned looks_ = 0;
};

}  // namespace rocemu::daemon
