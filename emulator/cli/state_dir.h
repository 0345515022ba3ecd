// A NIC's state directory: BASE/NAME with the files
//   lock      held with flock(2) by `rocemu run` and by the daemon (which inherits the descriptor)
//             as long as either lives: a directory whose lock is free belongs to nobody
//   pid       the daemon's process id
//   log       what the daemon wrote to stdout and stderr
//   nic.sock, sys/   made and removed by the daemon
//
// BASE is private to one user. Whoever makes, examines or removes a directory in it holds
// BASE/.lock meanwhile, so that a directory is never seen between its making and its locking.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace rocemu::cli {

inline constexpr std::string_view kDefaultName = "default";
inline constexpr std::string_view kPrivatePrefix = "run-";  // names of the NICs of `rocemu run`
inline constexpr std::size_t kMaxNameBytes = 32;

// 1 to 32 of A-Z a-z 0-9 . _ - with neither a dot nor a dash in front.
bool valid_name(std::string_view name);
void require_valid_name(std::string_view name);

// True when a folder is there and its files are in memory (tmpfs).
bool is_in_memory(const std::filesystem::path& folder);

// The places state directories can be in; tests put other folders here.
struct BasePlaces {
  std::filesystem::path xdg_runtime_dir;  // $XDG_RUNTIME_DIR, empty when not set
  std::filesystem::path run = "/run";
  std::filesystem::path shm = "/dev/shm";
  std::filesystem::path tmp = "/tmp";
  bool (*in_memory)(const std::filesystem::path&) = is_in_memory;
};

// Returns XDG_RUNTIME_DIR/rocemu when that folder is writable and the user's own; else for root
// /run/rocemu, or /dev/shm/rocemu where /run is on a disk; for others /dev/shm/rocemu-UID, or
// /tmp/rocemu-UID where /dev/shm is not in memory. Nothing is made. A start makes some 400 small
// files, and ext4 gets slow when such are made and removed again and again: after ten starts one
// took 0.6 s, where one in memory takes 0.2.
std::filesystem::path choose_base(const BasePlaces& places, uid_t user);

// The same for this process.
std::filesystem::path own_base();

// Throws Failure unless `base` is a real folder that belongs to `user` and only they can write to
// it: /tmp is everybody's, and somebody else may have put one there. False when there is none.
bool check_base(const std::filesystem::path& base, uid_t user);

// Throws Failure (usage) when the socket's path would not fit in sockaddr_un.
void require_socket_path_fits(const std::filesystem::path& state_dir);

enum class Liveness {
  kAbsent,
  kDead,  // the directory is there, its owner is gone
  kAlive,
};
Liveness liveness(const std::filesystem::path& base, std::string_view name);

// Removes the directories of private NICs whose owner is gone.
void remove_stale_private(const std::filesystem::path& base);

// Removes BASE/NAME unless its lock is held; true when it is gone afterwards.
bool remove_if_dead(const std::filesystem::path& base, std::string_view name);

class StateDir {
 public:
  // Makes BASE/NAME and takes its lock. A dead one of that name is replaced; a living one is a
  // Failure (wrong state).
  static StateDir create(const std::filesystem::path& base, std::string_view name);

  const std::filesystem::path& path() const { return path_; }
  int lock_fd() const { return lock_.get(); }

  // Removes the directory with all that is in it and gives the lock up.
  void remove();

 private:
  StateDir(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  UniqueFd lock_;
};

// Returns the last line of the log in a state directory that is not blank, without "rocemud: "
// before it; empty when there is none.
std::string last_log_line(const std::filesystem::path& state_dir);

// Makes a name for a private NIC that no other has: run-PID-RANDOM.
std::string private_name();

}  // namespace rocemu::cli
