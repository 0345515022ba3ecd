#include "emulator/daemon/wait_sources.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

namespace rocemu::daemon {
namespace {

// Descriptor is what proc_pid_fdinfo(5) says of a descriptor; reading that asks no server.
struct Descriptor {
  uint64_t inode = 0;
  std::optional<unsigned> userfaults;  // a userfaultfd's: how many wait
  std::optional<unsigned> fuse_connection;
};

Descriptor read_descriptor(const std::filesystem::path& fdinfo) {
  Descriptor descriptor;
  std::ifstream file(fdinfo);
  for (std::string line; std::getline(file, line);) {
    unsigned long long value = 0;
    if (std::sscanf(line.c_str(), "ino: %llu", &value) == 1) descriptor.inode = value;
    // "total" alone stands in those of other files, too, so "pending" has to be before it.
    if (line.starts_with("pending:")) descriptor.userfaults = 0;
    if (descriptor.userfaults && std::sscanf(line.c_str(), "total: %llu", &value) == 1)
      descriptor.userfaults = static_cast<unsigned>(value);
    if (std::sscanf(line.c_str(), "fuse_connection: %llu", &value) == 1)
      descriptor.fuse_connection = static_cast<unsigned>(value);
  }
  return descriptor;
}

std::string of_process(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
}

template <class Visit>
void visit_descriptors(pid_t pid, Visit visit) {
  std::error_code ignored;  // a process that has ended has none
  for (std::filesystem::directory_iterator at(of_process(pid, "fdinfo"), ignored), end;
       !ignored && at != end; at.increment(ignored))
    visit(read_descriptor(at->path()));
}

template <class Visit>
void visit_processes(Visit visit) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at("/proc", ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) visit(pid);
  }
}

// The minor numbers of the file systems without a block device of which the program has mapped
// files.
std::set<unsigned> mapped_file_systems(pid_t pid) {
  std::set<unsigned> found;
  std::ifstream maps(of_process(pid, "maps"));
  for (std::string line; std::getline(maps, line);) {
    unsigned major = 0, minor = 0;
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %llu", &major, &minor, &inode) == 3 &&
        major == 0 && inode != 0)
      found.insert(minor);
  }
  return found;
}

std::string abort_file(unsigned fuse_connection) {
  return "/sys/fs/fuse/connections/" + std::to_string(fuse_connection) + "/abort";
}

bool holds(pid_t pid, const WaitSources& sources) {
  bool found = false;
  visit_descriptors(pid, [&](const Descriptor& descriptor) {
    if (descriptor.userfaults) found |= sources.userfaultfds.contains(descriptor.inode);
    if (descriptor.fuse_connection)
      found |= sources.fuse_connections.contains(*descriptor.fuse_connection);
  });
  return found;
}

// kNobody when there is no such file.
constexpr uid_t kNobody = static_cast<uid_t>(-1);
uid_t owner_of(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? file.st_uid : kNobody;
}

// The real one: what /proc says of the files of a process that cannot be dumped is root.
uid_t user_of(pid_t pid) {
  std::ifstream status(of_process(pid, "status"));
  for (std::string line; std::getline(status, line);) {
    unsigned user = 0;
    if (std::sscanf(line.c_str(), "Uid: %u", &user) == 1) return user;
  }
  return kNobody;
}

bool is_accomplice(pid_t pid, const Accomplices& accomplices) {
  return pid != ::getpid() && accomplices.user != kNobody && user_of(pid) == accomplices.user &&
         (accomplices.user != 0 || ::getsid(pid) == accomplices.session);
}

}  // namespace

std::string waits_in(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/wchan");
  std::string function;
  std::getline(file, function);
  return function;
}

WaitSources userfaultfds_of(pid_t program) {
  WaitSources sources;
  visit_descriptors(program, [&](const Descriptor& descriptor) {
    if (descriptor.userfaults) sources.userfaultfds.insert(descriptor.inode);
  });
  return sources;
}

WaitSources fuse_connections_of(pid_t program) {
  WaitSources sources;
  const std::set<unsigned> mapped = mapped_file_systems(program);
  for (const unsigned minor : mapped)
    if (::access(abort_file(minor).c_str(), F_OK) == 0) sources.fuse_connections.insert(minor);
  if (!mapped.empty())
    visit_processes([&](pid_t pid) {
      visit_descriptors(pid, [&](const Descriptor& descriptor) {
        if (descriptor.fuse_connection && mapped.contains(*descriptor.fuse_connection))
          sources.fuse_connections.insert(*descriptor.fuse_connection);
      });
    });
  return sources;
}

Accomplices accomplices_of(pid_t program) { return {user_of(program), ::getsid(program)}; }

unsigned end(const WaitSources& sources, const Accomplices& accomplices) {
  unsigned ended = 0;
  for (const unsigned minor : sources.fuse_connections) {
    if (accomplices.user == 0 || owner_of(abort_file(minor)) != accomplices.user) continue;
    std::ofstream file(abort_file(minor));
    if (file << "1" << std::flush) ++ended;
  }
  visit_processes([&](pid_t pid) {
    if (is_accomplice(pid, accomplices) && holds(pid, sources) && ::kill(pid, SIGKILL) == 0)
      ++ended;
  });
  return ended;
}

}  // namespace rocemu::daemon
