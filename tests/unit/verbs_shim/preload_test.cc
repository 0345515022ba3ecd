// What the preload library makes of paths and descriptors; program_test.cc sees to it that it is
// loaded, with a sysfs tree of one device.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "verbs_shim/abi/control.h"

namespace fs = std::filesystem;

namespace {

constexpr char kDevice[] = "/dev/infiniband/uverbs0";
constexpr char kGuid[] = "0200:00ff:fe00:0001";

std::string read_line(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return "";
  char line[64] = {};
  const bool got = std::fgets(line, sizeof(line), file) != nullptr;
  std::fclose(file);
  const std::string text = got ? line : "";
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> list(const char* path) {
  std::vector<std::string> names;
  DIR* directory = opendir(path);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  return names;
}

fs::path tree() { return fs::path(getenv(ROCEMU_ENV_DIR)) / ROCEMU_SYSFS_NAME; }

}  // namespace

TEST_CASE("the RDMA classes are the NIC's, however the path is spelt") {
  CHECK(list("/sys/class/infiniband") == std::vector<std::string>{"rocemu0"});
  CHECK(read_line("/sys/class/infiniband/rocemu0/node_guid") == kGuid);
  CHECK(read_line("//sys/./class//infiniband/rocemu0/node_guid") == kGuid);
  CHECK(access("/sys/class/infiniband/rocemu0", F_OK) == 0);
  CHECK(access("/sys/class/infiniband_mad", F_OK) == -1);
  CHECK(read_line(tree() / "class/infiniband/rocemu0/node_guid") == kGuid);
}

TEST_CASE("the rest of /sys is the host's, and what the host lacks the NIC's") {
  struct stat host = {};
  struct stat seen = {};
  REQUIRE(stat("/sys/class", &seen) == 0);
  REQUIRE(fstatat(open("/", O_RDONLY | O_CLOEXEC), "sys/class", &host, 0) == 0);
  CHECK(host.st_ino == seen.st_ino);

  const fs::path device = tree() / "devices/pci-of-a-test/function";
  fs::create_directories(device);
  std::ofstream(device / "numa_node") << "-1\n";
  fs::create_directory_symlink("../../../devices/pci-of-a-test/function",
                               tree() / "class/infiniband/rocemu0/device");
  char path[PATH_MAX];
  REQUIRE(realpath("/sys/class/infiniband/rocemu0/device", path) != nullptr);
  CHECK(std::string(path) == "/sys/devices/pci-of-a-test/function");
  CHECK(read_line("/sys/devices/pci-of-a-test/function/numa_node") == "-1");
  const ssize_t length = readlink("/sys/class/infiniband/rocemu0/device", path, sizeof(path));
  CHECK(std::string(path, static_cast<size_t>(length)) ==
        "../../../devices/pci-of-a-test/function");
  errno = 0;
  CHECK(open("/sys/devices/pci-of-no-test", O_RDONLY) == -1);
  CHECK(errno == ENOENT);
}

TEST_CASE("a device node is a character device with the number that sysfs says") {
  struct stat named = {};
  REQUIRE(stat(kDevice, &named) == 0);
  const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  struct stat opened = {};
  REQUIRE(fstat(fd, &opened) == 0);
  for (const struct stat& node : {named, opened}) {
    CHECK(S_ISCHR(node.st_mode));
    CHECK(node.st_rdev == makedev(231, 192));
  }
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(access(kDevice, R_OK | W_OK) == 0);
  close(fd);
  // Whatever has the number afterwards is itself.
  const int other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  REQUIRE(other == fd);
  REQUIRE(fstat(other, &opened) == 0);
  CHECK(opened.st_rdev == makedev(1, 5));
  close(other);
}

TEST_CASE("a descriptor that took a device's place unseen is written to") {
  const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], fd) == fd);
  struct stat opened = {};
  REQUIRE(fstat(fd, &opened) == 0);
  CHECK(S_ISFIFO(opened.st_mode));
  CHECK(write(fd, "x", 1) == 1);
  char byte = 0;
  CHECK(read(ends[0], &byte, 1) == 1);
  CHECK(byte == 'x');
  for (int open_fd : {fd, ends[0], ends[1]}) close(open_fd);
}

TEST_CASE("what the NIC doesn't have does not exist") {
  for (const char* path : {"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs1",
                           "/dev/infiniband/umad0", "/dev/infiniband/uverbs0/x"}) {
    CAPTURE(path);
    errno = 0;
    CHECK(open(path, O_RDWR) == -1);
    CHECK(errno == ENOENT);
    struct stat node;
    CHECK(stat(path, &node) == -1);
    CHECK(access(path, F_OK) == -1);
  }
}

TEST_CASE("a socket of NETLINK_RDMA looks like one of the kernel's") {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  REQUIRE(fd >= 0);
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  const int on = 1;
  CHECK(setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) == 0);
  sockaddr_nl name = {};
  name.nl_family = AF_NETLINK;
  CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
  socklen_t bytes = sizeof(name);
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
  CHECK(bytes == sizeof(name));
  CHECK(name.nl_family == AF_NETLINK);
  CHECK(name.nl_pid == static_cast<uint32_t>(getpid()));

  // One that is cut short, so that the NIC is not asked. Nothing is there before and behind.
  char reply[256];
  CHECK(recv(fd, reply, sizeof(reply), MSG_DONTWAIT) == -1);
  nlmsghdr request = {};
  request.nlmsg_len = 100;
  request.nlmsg_seq = 7;
  const auto way = GENERATE(0, 1, 2);
  if (way == 0) CHECK(send(fd, &request, sizeof(request), 0) == sizeof(request));
  if (way == 1) CHECK(write(fd, &request, sizeof(request)) == sizeof(request));
  if (way == 2) {
    sockaddr_nl kernel = {};
    kernel.nl_family = AF_NETLINK;
    CHECK(sendto(fd, &request, sizeof(request), 0, reinterpret_cast<const sockaddr*>(&kernel),
                 sizeof(kernel)) == sizeof(request));
  }
  pollfd readable = {fd, POLLIN, 0};
  CHECK(poll(&readable, 1, 0) == 1);
  sockaddr_nl sender = {};
  bytes = sizeof(sender);
  const ssize_t got =
      recvfrom(fd, reply, sizeof(reply), 0, reinterpret_cast<sockaddr*>(&sender), &bytes);
  REQUIRE(got >= static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))));
  CHECK(bytes == sizeof(sender));
  CHECK(sender.nl_family == AF_NETLINK);
  CHECK(sender.nl_pid == 0);
  nlmsghdr header;
  memcpy(&header, reply, sizeof(header));
  CHECK(header.nlmsg_type == NLMSG_ERROR);
  CHECK(header.nlmsg_seq == 7);
  int error = 0;
  memcpy(&error, reply + NLMSG_HDRLEN, sizeof(error));
  CHECK(error == -EINVAL);
  CHECK(recv(fd, reply, sizeof(reply), MSG_DONTWAIT) == -1);
  close(fd);

  // Whatever has the number afterwards is itself.
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  CHECK(ends[0] == fd);
  CHECK(send(ends[0], "x", 1, 0) == 1);
  CHECK(recv(ends[1], reply, sizeof(reply), 0) == 1);
  for (const int end : ends) close(end);
}

TEST_CASE("the end behind a socket of NETLINK_RDMA goes unseen, and another file is there") {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  REQUIRE(fd >= 0);
  REQUIRE(fcntl(fd + 1, F_GETFD) >= 0);
  REQUIRE(syscall(SYS_close_range, fd, fd + 1, 0) == 0);
  const int again = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  REQUIRE(again == fd);
  nlmsghdr request = {};
  request.nlmsg_len = 100;
  REQUIRE(send(again, &request, sizeof(request), 0) == sizeof(request));
  char reply[256];
  CHECK(recv(again, reply, sizeof(reply), MSG_DONTWAIT) > 0);

  // Closed with the socket if it is its own, and left alone if it is the program's by now.
  REQUIRE(syscall(SYS_close_range, fd + 1, fd + 1, 0) == 0);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  REQUIRE(pipe_ends[0] == fd + 1);
  CHECK(close(again) == 0);
  CHECK(fcntl(pipe_ends[0], F_GETFD) >= 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_CASE("libnl, by which libibverbs looks for devices, is refused NETLINK_RDMA") {
  void* const libnl = dlopen("libnl-3.so.200", RTLD_NOW);
  REQUIRE(libnl != nullptr);
  const auto alloc = reinterpret_cast<void* (*)()>(dlsym(libnl, "nl_socket_alloc"));
  const auto connect = reinterpret_cast<int (*)(void*, int)>(dlsym(libnl, "nl_connect"));
  const auto release = reinterpret_cast<void (*)(void*)>(dlsym(libnl, "nl_socket_free"));
  REQUIRE((alloc != nullptr && connect != nullptr && release != nullptr));
  void* const refused = alloc();
  CHECK(connect(refused, NETLINK_RDMA) < 0);
  release(refused);
  void* const other = alloc();
  CHECK(connect(other, NETLINK_ROUTE) == 0);
  release(other);
}

TEST_CASE("other netlink is the kernel's") {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  CHECK(fd >= 0);
  close(fd);
}
