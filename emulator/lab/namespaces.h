// Namespaces of a lab's hosts (network, mount, UTS; the user namespace in which an ordinary user is
// root), and the processes that work in them: there is no way back out of a user namespace, so
// whatever is to be done in one is done by a child.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "emulator/cli/process/signals.h"

namespace rocemu::lab {

// Runs `work` in a child, which ends with 0, or with 1 and a line on stderr when `work` throws. As
// a shell's background job it ignores ^C.
pid_t start(const std::function<void()>& work, const cli::SignalWatch* signals = nullptr);
bool succeeded(pid_t child);  // waits for its end
// All that `work` writes to stdout; none when it fails. Its stderr goes to /dev/null.
std::optional<std::string> output_of(const std::function<void()>& work);

// The rest throws std::system_error.

// Opens `path` in place of what this process has as `fd`.
void redirect(int fd, const std::string& path, int flags);

// Gives this process namespaces of its own, with `as_root` in a user namespace in which it is root.
void make_namespaces(bool as_root);
// Enters those of a process, and with `as_root` its user namespace unless this process is in it.
void enter_namespaces(pid_t pid, bool as_root);

// Network namespaces, and the processes in them. The kernel names a namespace by a number that it
// gives to the next one as soon as the namespace has gone, so they are held open as long as
// processes are looked for.
class HeldNetworks {
 public:
  // Holds the network namespace of a process, unless the process has ended or shares this one's.
  void hold_that_of(pid_t pid);
  std::vector<pid_t> processes() const;

 private:
  std::vector<UniqueFd> held_;
  std::set<std::string> names_;
};

}  // namespace rocemu::lab
