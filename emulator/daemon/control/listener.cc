#include "emulator/daemon/control/listener.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/reaper/reaper.h"

namespace rocemu::daemon {
namespace {

using boost::asio::posix::descriptor_base;
using boost::system::error_code;

constexpr int kBacklog = 128;
constexpr size_t kFewest = 256;                   // of fewer connections each process may have all
constexpr std::chrono::milliseconds kPause{100};  // when no connection can be accepted

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw std::runtime_error(std::string(what) + " " + path.string() + ": " + std::strerror(error));
}

UniqueFd make_socket(const std::filesystem::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail(path, "can't make the socket", errno);
  return fd;
}

bool somebody_answers(const std::filesystem::path& path, const sockaddr_un& address) {
  const UniqueFd probe = make_socket(path);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
             0 ||
         errno == EAGAIN;
}

UniqueFd listen_at(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof(address.sun_path))
    throw std::runtime_error("the path " + path.string() + " is too long for a socket (" +
                             std::to_string(sizeof(address.sun_path) - 1) +
                             " bytes): use a shorter --dir");
  std::strcpy(address.sun_path, path.c_str());

  if (somebody_answers(path, address))
    throw std::runtime_error("another rocemud answers at " + path.string() +
                             ": end it first, or use another --dir");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path, "can't replace the stale", errno);

  UniqueFd fd = make_socket(path);
  const mode_t before = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  ::umask(before);
  if (bound != 0) fail(path, "can't make the socket", error);
  if (::listen(fd.get(), kBacklog) != 0) fail(path, "can't listen at", errno);
  return fd;
}

}  // namespace

Listener::Listener(boost::asio::io_context& io, const SessionHost& host,
                   MailboxPoller* mailbox_poller, std::filesystem::path path, size_t max_sessions)
    : io_(io),
      host_(host),
      mailbox_poller_(mailbox_poller),
      path_(std::move(path)),
      max_sessions_(max_sessions),
      socket_(io, listen_at(path_).release()),
      pause_(io) {}

Listener::~Listener() { ::unlink(path_.c_str()); }

void Listener::start() { accept_next(); }

void Listener::close() {
  error_code ignored;
  socket_.close(ignored);
  pause_.cancel();
  std::vector<std::shared_ptr<Session>> all;
  for (const auto& entry : sessions_) all.push_back(entry.second);
  for (const auto& session : all) session->end();
}

void Listener::accept_next() {
  socket_.async_wait(descriptor_base::wait_read, [this](const error_code& error) {
    if (!error) accept();
  });
}

void Listener::accept() {
  try {
    if (!accept_one()) return pause();
  } catch (const std::exception& why) {  // without memory, or watches of epoll: for this one
    spdlog::error("a connection is lost: {}", why.what());
    return pause();
  }
  accept_next();
}

// False when none can be accepted now.
bool Listener::accept_one() {
  UniqueFd socket(
      ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    admit(std::move(socket));
  } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
    spdlog::error("can't accept a connection: {}", std::strerror(errno));
    return false;
  }
  return true;
}

bool Listener::may_connect(const PeerCredentials& peer) const {
  if (peer.uid != 0 && peer.uid != ::geteuid()) {
    spdlog::warn("process {}: user {} is not the NIC's owner; refused", peer.pid, peer.uid);
    return false;
  }
  if (sessions_.size() == max_sessions_) {
    spdlog::warn("process {}: {} connections are open already; refused", peer.pid, max_sessions_);
    return false;
  }
  const auto own = by_process_.find(peer.pid);
  if (max_sessions_ >= kFewest && peer.pid != 0 && own != by_process_.end() &&
      own->second >= max_sessions_ / 4 * 3) {
    spdlog::warn("process {}: it has {} connections; refused", peer.pid, own->second);
    return false;
  }
  return true;
}

void Listener::admit(UniqueFd socket) {
  PeerCredentials peer;
  if (!peer_credentials(socket.get(), peer) || !may_connect(peer))
    return close_elsewhere(std::move(socket));
  auto session = std::make_shared<Session>(io_, host_, mailbox_poller_, std::move(socket), peer,
                                           [this, pid = peer.pid](Session& ended) {
                                             if (sessions_.erase(&ended) != 0) forget(pid);
                                           });
  size_t& own = by_process_[peer.pid];
  sessions_.emplace(session.get(), session);
  ++own;
  session->start();
}

void Listener::forget(pid_t process) {
  const auto own = by_process_.find(process);
  if (--own->second == 0) by_process_.erase(own);
}

// Out of descriptors, most likely: the connection stays in the backlog until there is one.
void Listener::pause() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const error_code& error) {
    if (!error) accept_next();
  });
}

}  // namespace rocemu::daemon
