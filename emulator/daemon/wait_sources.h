// Who keeps a page fault waiting that the NIC runs into in a program's memory: holders of the
// program's userfaultfds (userfaultfd(2)), and servers of FUSE files that it has mapped (fuse(4)).
// All that is known of them is what /proc shows: descriptors that lie in a socket are not found.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

namespace rocemu::daemon {

struct WaitSources {
  std::set<uint64_t> userfaultfds;      // inode numbers, of which each userfaultfd has its own
  std::set<unsigned> fuse_connections;  // minor numbers of their file systems
};

// The function of the kernel in which a thread of this process waits; empty or "0" for none.
std::string waits_in(pid_t thread);

WaitSources userfaultfds_of(pid_t program);
// Reading the program's mappings can itself wait for whom it is to find.
WaitSources fuse_connections_of(pid_t program);

// Aborts the FUSE connections, and kills the other processes that hold any of `sources`; with
// `any_userfaultfd` those that hold any for which a fault waits. How many there were.
unsigned end(const WaitSources& sources, bool any_userfaultfd);

}  // namespace rocemu::daemon
