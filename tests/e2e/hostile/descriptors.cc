// Descriptors that whoever closes them waits for. The message around them is malformed, so that the
// NIC closes them at once.
#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {
namespace {

constexpr unsigned kPauseUs = 2000;  // what is passed is to wait, not to flood

int must_fd(int fd, const char* what) {
  if (fd < 0) fail_errno(errno, what);
  return fd;
}

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

// ---- a FUSE server that answers all but FLUSH and RELEASE ----

void write_text(const char* path, const std::string& text) {
  std::ofstream(path) << text;  // without a namespace of its own there is nothing to write
}

// An ordinary user mounts in a namespace of its own.
int mount_fuse(const char* where) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const bool own = uid != 0;
  if (::unshare(CLONE_NEWNS | (own ? CLONE_NEWUSER : 0)) != 0) return -1;
  if (own) {
    ::prctl(PR_SET_DUMPABLE, 1);
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
    write_text("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
  }
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  const int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse < 0) return -1;
  const std::string options =
      "fd=" + std::to_string(fuse) + ",rootmode=100600,user_id=0,group_id=0";
  if (::mount("hostile", where, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0) return fuse;
  ::close(fuse);
  return -1;
}

// A file to mount on.
std::string mount_point() {
  char path[] = "/tmp/hostile-fuse-XXXXXX";
  ::close(must_fd(::mkstemp(path), "mkstemp"));
  return path;
}

std::string fuse_missing() {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string where = mount_point();
    const int fuse = mount_fuse(where.c_str());
    ::umount2(where.c_str(), MNT_DETACH);
    ::unlink(where.c_str());
    ::_exit(fuse < 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? "" : "FUSE: no /dev/fuse, or this user may not mount (user namespaces)";
}

template <class Body>
void answer(int fuse, uint64_t unique, const Body& body) {
  struct {
    fuse_out_header header;
    Body body;
  } reply{{static_cast<uint32_t>(sizeof(fuse_out_header) + sizeof(Body)), 0, unique}, body};
  if (::write(fuse, &reply, sizeof(reply)) < 0) return;
}

fuse_attr attributes() {
  fuse_attr attr{};
  attr.ino = FUSE_ROOT_ID;
  attr.size = 4096;
  attr.mode = S_IFREG | 0600;
  attr.nlink = 1;
  return attr;
}

[[noreturn]] void serve(int fuse) {
  std::vector<char> buffer(1 << 17);
  for (;;) {
    if (::read(fuse, buffer.data(), buffer.size()) <= 0) ::_exit(1);
    fuse_in_header header;
    std::memcpy(&header, buffer.data(), sizeof(header));
    switch (header.opcode) {
      case FUSE_INIT: {
        fuse_init_out init{};
        init.major = FUSE_KERNEL_VERSION;
        init.minor = FUSE_KERNEL_MINOR_VERSION;
        init.max_write = 4096;
        answer(fuse, header.unique, init);
        break;
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr = attributes();
        answer(fuse, header.unique, out);
        break;
      }
      case FUSE_OPEN:
        answer(fuse, header.unique, fuse_open_out{});
        break;
      default:  // never
        break;
    }
  }
}

void pass_fuse_files(const std::string&) {
  const std::string where = mount_point();
  const int fuse = mount_fuse(where.c_str());
  if (fuse < 0) fail_errno(errno, "mounting FUSE");
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(fuse);
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

constexpr Deed kDeeds[] = {{"lingering-sockets", nothing_missing, pass_lingering_sockets},
                           {"fuse-files", fuse_missing, pass_fuse_files}};

}  // namespace

std::span<const Deed> descriptor_deeds() { return kDeeds; }

}  // namespace rocemu::e2e
