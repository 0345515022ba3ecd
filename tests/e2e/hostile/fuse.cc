#include "tests/e2e/hostile/fuse.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

int must_fd(int fd, const char* what) {
  if (fd < 0) fail_errno(errno, what);
  return fd;
}

namespace {

void write_text(const char* path, const std::string& text) {
  std::ofstream(path) << text;  // without a namespace of its own there is nothing to write
}

}  // namespace

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

namespace {

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

}  // namespace

[[noreturn]] void serve_fuse(int fuse) {
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

}  // namespace rocemu::e2e
