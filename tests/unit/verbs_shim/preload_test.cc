// What the preload library makes of paths and descriptors; program_test.cc sees to it that it is
// loaded, with a sysfs tree of one device.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

TEST_CASE("NETLINK_RDMA is hidden, other netlink is not") {
  constexpr int kNetlinkRdma = 20;
  errno = 0;
  CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, kNetlinkRdma) == -1);
  CHECK(errno == EPROTONOSUPPORT);
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  close(fd);
}
