#include "emulator/lab/lab_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <tuple>

#include "base/unique_fd.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/process_tree.h"
#include "emulator/cli/state_dir.h"

namespace rocemu::lab {

namespace fs = std::filesystem;
using cli::Failure;

namespace {

// In memory if possible, as the NICs' state and for its reason.
fs::path own_base() {
  const bool in_memory = ::access("/dev/shm", W_OK) == 0 && cli::is_in_memory("/dev/shm");
  const fs::path base =
      std::string(in_memory ? "/dev/shm" : "/tmp") + "/rocemu-lab-" + std::to_string(::geteuid());
  ::mkdir(base.c_str(), 0700);
  struct stat info = {};
  if (::lstat(base.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    throw Failure(base.native() + " is there and not yours; have it removed");
  return base;
}

}  // namespace

void require_lab_name(const std::string& name) {
  if (!cli::valid_name(name) || name[0] == '_')
    throw Failure("'" + name + "' is no name", cli::kUsage);
}

LabDir LabDir::create(const std::string& name) {
  LabDir dir(name, own_base() / name);
  if (::mkdir(dir.path_.c_str(), 0777) != 0)
    throw Failure("the lab '" + name + "' is up; end it with: rocemu lab down --name " + name,
                  cli::kWrongState);
  fs::create_directory(dir.path_ / "pids");
  ::mkdir((dir.path_ / "run").c_str(), 0700);
  return dir;
}

LabDir LabDir::find(const std::string& name) {
  const char* outer = name.empty() ? std::getenv("ROCEMU_LAB") : nullptr;
  const std::string asked = name.empty() ? "default" : name;
  require_lab_name(asked);
  LabDir dir(asked, outer != nullptr && *outer != '\0' ? fs::path(outer) : own_base() / asked);
  // Nothing but a lab's directory is ever taken for one, since it is removed in the end.
  if (!fs::is_directory(dir.path_ / "pids") || !fs::is_directory(dir.path_ / "run"))
    throw Failure("there is no lab '" + asked + "'; make one with: rocemu lab up",
                  cli::kWrongState);
  return dir;
}

void LabDir::remove() const { fs::remove_all(path_); }

std::string LabDir::last_log_line() const { return cli::last_log_line(path_); }

void LabDir::note(const std::string& holder, pid_t pid) const {
  std::ofstream(path_ / "pids" / holder) << pid << '\n';
}

pid_t LabDir::pid_of(const std::string& holder) const {
  pid_t pid = 0;
  std::ifstream(path_ / "pids" / holder) >> pid;
  return pid;
}

std::vector<std::string> LabDir::holders() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_ / "pids"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names, {},
                    [](const std::string& name) { return std::tuple(name.size(), name); });
  return names;
}

std::vector<std::string> LabDir::hosts() const {
  std::vector<std::string> names = holders();
  std::erase_if(names, [](const std::string& name) { return name[0] != 'h'; });
  return names;
}

bool LabDir::lives(const std::string& holder) const {
  std::string name;
  const pid_t pid = pid_of(holder);
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/cmdline"), name, '\0');
  return name == mark() && cli::in_own_pid_namespace(pid);
}

// The hold is a lock of the open file, which is inherited and never closed.
void LabDir::hold(const std::string& holder) const {
  const int file = ::open((path_ / "pids" / holder).c_str(), O_RDONLY | O_CREAT, 0666);
  if (file < 0 || ::flock(file, LOCK_SH) != 0)
    throw std::system_error(errno, std::generic_category(), path_ / "pids" / holder);
}

bool LabDir::held(const std::string& holder) const {
  const UniqueFd file(::open((path_ / "pids" / holder).c_str(), O_RDONLY | O_CLOEXEC));
  return file && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void LabDir::require_reach() const {
  for (const std::string& holder : holders())
    if (held(holder) && !lives(holder))
      throw Failure("the processes of the lab '" + name_ +
                        "' are in another PID namespace; call rocemu lab where it was brought up",
                    cli::kWrongState);
}

}  // namespace rocemu::lab
