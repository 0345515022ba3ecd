// Processes of this machine as /proc shows them: their descent, and those that listen.
#pragma once

#include <sys/types.h>

#include <vector>

namespace rocemu::cli {

// The process and all that descend from it, as far as their parents still live; empty when it has
// ended.
std::vector<pid_t> process_tree(pid_t root);

// True when `pid` is the number of a process of this process's own PID namespace, whatever /proc
// shows besides.
bool in_own_pid_namespace(pid_t pid);

// True when one of them has a TCP socket that waits for connections.
bool any_listens_on_tcp(const std::vector<pid_t>& processes);

}  // namespace rocemu::cli
