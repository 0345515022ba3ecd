#include "emulator/cli/state_dir.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>

#include "emulator/cli/process/exit_codes.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = "lock";

Failure system_failure(const std::string& what, const fs::path& path) {
  return Failure("cannot " + what + " " + path.native() + ": " + std::strerror(errno));
}

bool is_writable(const fs::path& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

bool is_own_writable_folder(const fs::path& path, uid_t user) {
  struct stat info = {};
  return path.is_absolute() && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == user && is_writable(path);
}

void make_base(const fs::path& base) {
  if (::mkdir(base.c_str(), 0700) != 0 && errno != EEXIST) throw system_failure("make", base);
  check_base(base, ::geteuid());
}

// BASE/.lock, held for the life of the object.
class BaseLock {
 public:
  explicit BaseLock(const fs::path& base) {
    const fs::path path = base / ".lock";
    fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd_) throw system_failure("open", path);
    while (::flock(fd_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) throw system_failure("lock", path);
    }
  }

 private:
  UniqueFd fd_;
};

// The next two are called with the BaseLock held.
Liveness examine(const fs::path& state_dir) {
  struct stat info = {};
  if (::lstat(state_dir.c_str(), &info) != 0) return Liveness::kAbsent;
  const UniqueFd lock(::open((state_dir / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!lock) return Liveness::kDead;
  return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 ? Liveness::kDead : Liveness::kAlive;
}

void remove_tree(const fs::path& state_dir) {
  std::error_code error;
  fs::remove_all(state_dir, error);
  if (error) {
    throw Failure("cannot remove " + state_dir.native() + ": " + error.message() +
                  "; remove it by hand");
  }
}

}  // namespace

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name[0] == '.' || name[0] == '-') return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

void require_valid_name(std::string_view name) {
  if (valid_name(name)) return;
  throw Failure("'" + std::string(name) +
                    "' is no name for a NIC; use 1 to 32 letters, digits, '.', '_' or '-', with a "
                    "letter, a digit or '_' first",
                kUsage);
}

bool is_in_memory(const fs::path& folder) {
  struct statfs info = {};
  return ::statfs(folder.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

fs::path choose_base(const BasePlaces& places, uid_t user) {
  if (!places.xdg_runtime_dir.empty() && is_own_writable_folder(places.xdg_runtime_dir, user)) {
    return places.xdg_runtime_dir / "rocemu";
  }
  const bool has_memory = places.in_memory(places.shm) && is_writable(places.shm);
  // The root of a user namespace, where /run is somebody else's, may share the others with root.
  if (user == 0 && is_own_writable_folder(places.run, user))
    return (has_memory && !places.in_memory(places.run) ? places.shm : places.run) / "rocemu";
  return (has_memory ? places.shm : places.tmp) / ("rocemu-" + std::to_string(user));
}

fs::path own_base() {
  BasePlaces places;
  if (const char* xdg = std::getenv("XDG_RUNTIME_DIR")) places.xdg_runtime_dir = xdg;
  return choose_base(places, ::geteuid());
}

bool check_base(const fs::path& base, uid_t user) {
  struct stat info = {};
  if (::lstat(base.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    throw system_failure("examine", base);
  }
  std::string complaint;
  if (!S_ISDIR(info.st_mode)) {
    complaint = "is not a folder";
  } else if (info.st_uid != user) {
    complaint = "belongs to user " + std::to_string(info.st_uid);
  } else if ((info.st_mode & 022) != 0) {
    complaint = "can be written by other users";
  }
  if (complaint.empty()) return true;
  throw Failure(
      base.native() + " " + complaint +
      ", so it is not used; have it removed, or set XDG_RUNTIME_DIR to a folder of yours");
}

void require_socket_path_fits(const fs::path& state_dir) {
  constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  const std::size_t bytes = (state_dir / ROCEMU_SOCKET_NAME).native().size();
  if (bytes <= kMaxPathBytes) return;
  throw Failure("the socket's path " + (state_dir / ROCEMU_SOCKET_NAME).native() + " has " +
                    std::to_string(bytes) + " bytes and " + std::to_string(kMaxPathBytes) +
                    " is the most; use a shorter --name or a shorter XDG_RUNTIME_DIR",
                kUsage);
}

Liveness liveness(const fs::path& base, std::string_view name) {
  if (!check_base(base, ::geteuid())) return Liveness::kAbsent;
  const BaseLock hold(base);
  return examine(base / name);
}

void remove_stale_private(const fs::path& base) {
  if (!check_base(base, ::geteuid())) return;
  const BaseLock hold(base);
  std::error_code error;
  for (fs::directory_iterator it(base, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().native().starts_with(kPrivatePrefix)) continue;
    if (examine(it->path()) == Liveness::kDead) remove_tree(it->path());
  }
}

bool remove_if_dead(const fs::path& base, std::string_view name) {
  const BaseLock hold(base);
  if (examine(base / name) == Liveness::kAlive) return false;
  remove_tree(base / name);
  return true;
}

StateDir StateDir::create(const fs::path& base, std::string_view name) {
  require_valid_name(name);
  const fs::path path = base / name;
  require_socket_path_fits(path);
  make_base(base);
  const BaseLock hold(base);
  if (examine(path) == Liveness::kAlive) {
    throw Failure("a NIC named '" + std::string(name) +
                      "' is up already; end it with: rocemu down --name " + std::string(name),
                  kWrongState);
  }
  remove_tree(path);
  if (::mkdir(path.c_str(), 0700) != 0) throw system_failure("make", path);
  const fs::path lock_path = path / kLockName;
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock) throw system_failure("make", lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) throw system_failure("lock", lock_path);
  return StateDir(path, std::move(lock));
}

void StateDir::remove() {
  const BaseLock hold(path_.parent_path());
  remove_tree(path_);
  lock_.reset();
}

std::string last_log_line(const fs::path& state_dir) {
  std::ifstream log(state_dir / "log");
  std::string line;
  std::string last;
  while (std::getline(log, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  constexpr std::string_view kOwnName = "rocemud: ";
  return last.starts_with(kOwnName) ? last.substr(kOwnName.size()) : last;
}

std::string private_name() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) {
    throw Failure(std::string("cannot get random bytes: ") + std::strerror(errno));
  }
  char name[kMaxNameBytes + 1];
  std::snprintf(name, sizeof(name), "run-%d-%08x", ::getpid(), random);
  return name;
}

}  // namespace rocemu::cli
