// The directory of a lab: BASE/NAME with the files
//   pids/     one a holder: the process that keeps a host's namespaces (h1 …) or the bridge's
//   (wire)
//             alive, and the one that is the impaired wire (cable)
//   run/      the state of the NICs (emulator/cli/state_dir.h)
//   hosts     what the hosts have as /etc/hosts
//   log       what the holders and their set-up say on stderr
//   cable     what the impaired wire says: ready
//   user      is there when the lab is in a user namespace
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::lab {

class LabDir {
 public:
  // Both throw cli::Failure: when the lab is up already, and when there is none.
  static LabDir create(const std::string& name);
  // Finds the lab of that name; with an empty one that on whose host this process is, or else the
  // lab "default".
  static LabDir find(const std::string& name);
  void remove() const;

  const std::string& name() const { return name_; }
  const std::filesystem::path& path() const { return path_; }
  bool in_user_namespace() const { return std::filesystem::exists(path_ / "user"); }
  std::string last_log_line() const;

  void note(const std::string& holder, pid_t pid) const;
  pid_t pid_of(const std::string& holder) const;
  std::vector<std::string> hosts() const;    // h1, h2 …
  std::vector<std::string> holders() const;  // the hosts and all others

  // By the name that a holder runs under it is told from a process that has got its number since.
  std::string mark() const { return "rocemu-lab:" + path_.native(); }
  bool lives(const std::string& holder) const;
  // Called by the holder itself: until it and what it becomes has ended, held() is true, from
  // whichever PID namespace that is asked.
  void hold(const std::string& holder) const;
  bool held(const std::string& holder) const;
  // Throws cli::Failure (wrong state) when the lab's processes live in another PID namespace.
  void require_reach() const;

 private:
  LabDir(std::string name, std::filesystem::path path)
      : name_(std::move(name)), path_(std::move(path)) {}

  std::string name_;
  std::filesystem::path path_;
};

// Throws cli::Failure (usage).
void require_lab_name(const std::string& name);

}  // namespace rocemu::lab
