#include "emulator/lab/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "base/unique_fd.h"

namespace rocemu::lab {
namespace {

std::system_error failure(const std::string& what) {
  return {errno, std::generic_category(), what};
}

void write_file(const char* path, const std::string& text) {
  if (!(std::ofstream(path) << text << std::flush)) throw failure(path);
}

std::string namespace_of(const std::string& pid, const char* kind) {
  std::error_code ended;
  return std::filesystem::read_symlink("/proc/" + pid + "/ns/" + kind, ended);
}

}  // namespace

pid_t start(const std::function<void()>& work, const cli::SignalWatch* signals) {
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) throw failure("fork");
  if (child > 0) return child;
  if (signals != nullptr) signals->restore_in_child();
  for (const int number : {SIGINT, SIGQUIT}) ::signal(number, SIG_IGN);
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

bool succeeded(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return status == 0;
}

std::optional<std::string> output_of(const std::function<void()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw failure("pipe");
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  const pid_t child = start([&] {
    ::dup2(input.get(), STDOUT_FILENO);
    redirect(STDERR_FILENO, "/dev/null", O_WRONLY);
    work();
  });
  input.reset();
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t count; (count = ::read(output.get(), bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<size_t>(count));
  return succeeded(child) ? std::optional(text) : std::nullopt;
}

void redirect(int fd, const std::string& path, int flags) {
  const UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file || ::dup2(file.get(), fd) < 0) throw failure(path);
}

void make_namespaces(bool as_root) {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  constexpr int kKinds = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS;
  if (::unshare(kKinds | (as_root ? CLONE_NEWUSER : 0)) != 0) throw failure("unshare failed");
  if (as_root) {
    write_file("/proc/self/uid_map", "0 " + user + " 1");
    write_file("/proc/self/setgroups", "deny");  // without it an ordinary user has no gid_map
    write_file("/proc/self/gid_map", "0 " + group + " 1");
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) throw failure("mount /");
}

// Entering a mount namespace leads to its root: the working directory is gone to again, by its
// name. Where that is not there the process stays at the root.
void enter_namespaces(pid_t pid, bool as_root) {
  std::error_code unknown;
  const std::filesystem::path directory = std::filesystem::current_path(unknown);
  const std::string process = std::to_string(pid);
  std::vector<const char*> kinds = {"uts", "net", "mnt"};
  // The user namespace gives the right to enter the others, so it is the first. The one that a
  // process is in cannot be entered.
  if (as_root && namespace_of("self", "user") != namespace_of(process, "user"))
    kinds.insert(kinds.begin(), "user");
  for (const char* kind : kinds) {
    const std::string path = "/proc/" + process + "/ns/" + kind;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file || ::setns(file.get(), 0) != 0) throw failure(path);
  }
  if (!unknown) std::filesystem::current_path(directory, unknown);
}

void HeldNetworks::hold_that_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  UniqueFd held(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!held) return;
  std::error_code unknown;
  const std::string name =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(held.get()), unknown);
  if (name.empty() || name == namespace_of("self", "net")) return;
  names_.insert(name);
  held_.push_back(std::move(held));
}

std::vector<pid_t> HeldNetworks::processes() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") == std::string::npos &&
        names_.contains(namespace_of(pid, "net")))
      found.push_back(std::stoi(pid));
  }
  return found;
}

}  // namespace rocemu::lab
