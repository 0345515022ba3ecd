#include "emulator/daemon/control/connection/program_connection.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/reaper/reaper.h"

namespace rocemu::daemon {
namespace {

using boost::asio::posix::descriptor_base;
using boost::system::error_code;

std::vector<int> numbers(const std::vector<UniqueFd>& fds) {
  std::vector<int> result;
  for (const UniqueFd& fd : fds) result.push_back(fd.get());
  return result;
}

}  // namespace

ProgramConnection::ProgramConnection(boost::asio::io_context& io, UniqueFd socket,
                                     const PeerCredentials& credentials,
                                     MailboxPoller* mailbox_poller)
    : io_(io),
      mailbox_poller_(mailbox_poller),
      credentials_(credentials),
      socket_(io, socket.release()),
      process_(io),
      message_(std::make_unique<ReceivedMessage>()) {
  if (UniqueFd process = peer_process(socket_.native_handle(), credentials_.pid))
    process_.assign(process.release());
}

void ProgramConnection::start() {
  watch_peer();
  wait();
}

void ProgramConnection::end() {
  if (ended_) return;
  ended_ = true;
  // The program sees the end now. The close comes later: messages that nobody read may hold
  // descriptors, which go with the socket.
  ::shutdown(socket_.native_handle(), SHUT_RDWR);
  close_elsewhere(UniqueFd(socket_.release()));
  error_code ignored;
  process_.close(ignored);
  on_end();
}

void ProgramConnection::watch_peer() {
  if (!process_.is_open()) return;
  process_.async_wait(descriptor_base::wait_read,
                      [self = shared_from_this()](const error_code& error) {
                        if (!error) self->end();
                      });
}

void ProgramConnection::wait() {
  if (ended_) return;
  set_attended(false);
  socket_.async_wait(descriptor_base::wait_read,
                     [self = shared_from_this()](const error_code& error) {
                       if (error) return self->end();
                       if (!self->look_at_socket()) self->wait();
                     });
}

UniqueFd ProgramConnection::add_mailbox() {
  mailbox_ = std::make_unique<MailboxServer>();
  return mailbox_->take_fd();
}

void ProgramConnection::set_attended(bool attended) {
  if (mailbox_ != nullptr) mailbox_->set_attended(attended);
}

bool ProgramConnection::look_at_mailbox() {
  if (ended_) return true;
  if (mailbox_ == nullptr || !mailbox_->take(*message_)) return false;
  asked_by_mailbox_ = true;
  on_request(*message_);
  return true;
}

bool ProgramConnection::look_at_socket() {
  if (ended_) return true;
  switch (receive_message(socket_.native_handle(), *message_)) {
    case ReceiveResult::message:
      on_request(*message_);
      message_->close_fds();
      return true;
    case ReceiveResult::nothing:
      return false;
    case ReceiveResult::truncated:
      spdlog::warn("process {}: message too long or with too many descriptors; closing",
                   credentials_.pid);
      break;
    case ReceiveResult::ended:
      break;
  }
  end();
  return true;
}

void ProgramConnection::reply(std::span<const std::byte> bytes, std::span<const int> fds) {
  if (ended_) return;
  if (std::exchange(asked_by_mailbox_, false) && mailbox_->answer(bytes, !fds.empty()))
    return replied();
  switch (send_message(socket_.native_handle(), bytes, fds)) {
    case SendResult::sent:
      return replied();
    case SendResult::full:
      return keep_for_later(bytes, fds);
    case SendResult::ended:
      return end_soon();
  }
}

void ProgramConnection::end_soon() {
  boost::asio::post(io_, [self = shared_from_this()] { self->end(); });
}

void ProgramConnection::replied() {
  on_replied();
  if (ended_) return;
  if (mailbox_poller_ == nullptr || mailbox_ == nullptr) return wait();
  mailbox_poller_->keep(shared_from_this());
}

void ProgramConnection::keep_for_later(std::span<const std::byte> bytes, std::span<const int> fds) {
  pending_reply_.assign(bytes.begin(), bytes.end());
  for (const int fd : fds) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) {
      spdlog::error("process {}: out of descriptors; closing", credentials_.pid);
      return end_soon();
    }
    pending_fds_.push_back(std::move(copy));
  }
  wait_for_room();
}

void ProgramConnection::wait_for_room() {
  socket_.async_wait(descriptor_base::wait_write,
                     [self = shared_from_this()](const error_code& error) {
                       if (error) return self->end();
                       self->send_kept();
                     });
}

void ProgramConnection::send_kept() {
  if (ended_) return;
  switch (send_message(socket_.native_handle(), pending_reply_, numbers(pending_fds_))) {
    case SendResult::sent:
      pending_fds_.clear();
      return replied();
    case SendResult::full:
      return wait_for_room();
    case SendResult::ended:
      return end();
  }
}

}  // namespace rocemu::daemon
