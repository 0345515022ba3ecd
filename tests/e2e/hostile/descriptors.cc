// Descriptors that whoever closes them waits for. The message around them is malformed, so that the
// NIC closes them at once.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/hostile/fuse.h"
#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {
namespace {

constexpr unsigned kPauseUs = 2000;  // what is passed is to wait, not to flood

// Hands the descriptor to the NIC and gives it up here.
void pass(int fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const char* const dir = std::getenv("ROCEMU_DIR");
  if (dir == nullptr) fail("ROCEMU_DIR is not set: run this by `rocemu run`");
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/nic.sock", dir);
  const int nic = must_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket");
  if (::connect(nic, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    fail_errno(errno, address.sun_path);
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  ::sendmsg(nic, &message, MSG_NOSIGNAL);
  ::close(fd);
  ::close(nic);
}

// The sender of a connection that nobody reads from, with as much to send as fits.
int lingering_socket() {
  const int listener = must_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, at, length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, at, &length) != 0)
    fail_errno(errno, "listen");
  const int sender = must_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  if (::connect(sender, at, length) != 0) fail_errno(errno, "connect");
  must_fd(::accept(listener, nullptr, nullptr), "accept");  // and never reads
  ::close(listener);
  const linger hour{1, 3600};
  ::setsockopt(sender, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour));
  const std::vector<char> bytes(1 << 16);
  while (::send(sender, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  return sender;
}

void pass_lingering_sockets(const std::string&) {
  for (int i = 0; i < 200; ++i) {
    pass(lingering_socket());
    ::usleep(kPauseUs);
  }
  for (;;) ::pause();
}

void pass_fuse_files(const std::string&) {
  const std::string where = mount_point();
  const int fuse = mount_fuse(where.c_str());
  if (fuse < 0) fail_errno(errno, "mounting FUSE");
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve_fuse(fuse);
  }
  ::close(fuse);
  for (int i = 0; i < 24; ++i) {
    // The file is opened by a child that has gone when the NIC has the last descriptor: its own
    // close would wait, too.
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      pass(must_fd(::open(where.c_str(), O_RDWR | O_CLOEXEC), where.c_str()));
      ::_exit(0);
    }
    ::usleep(kPauseUs);
  }
  for (;;) ::pause();
}

}  // namespace

std::span<const Deed> descriptor_deeds() {
  static constexpr Deed kDeeds[] = {{"lingering-sockets", nothing_missing, pass_lingering_sockets},
                                    {"fuse-files", fuse_missing, pass_fuse_files}};
  return kDeeds;
}

}  // namespace rocemu::e2e
