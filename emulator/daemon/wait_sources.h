// These functions find who keeps a page fault waiting that the NIC runs into in a program's memory:
// holders of the program's userfaultfds (userfaultfd(2)), and servers of FUSE files that the
// program has mapped (fuse(4)). All that is known of them is what /proc shows: descriptors that lie
// in a socket are not found.
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

// Accomplices are those who may be ended along with a program. A disk of somebody else's that hangs
// is nobody's crime, and root's servers serve all: of root's processes only those are accomplices
// that were started in the program's own session.
struct Accomplices {
  uid_t user;
  pid_t session;
};
Accomplices accomplices_of(pid_t program);

// Aborts the FUSE connections, and kills the other processes that hold any of `sources`, as far as
// they are accomplices; root's FUSE connections stay. Returns how many it has ended.
unsigned end(const WaitSources& sources, const Accomplices& accomplices);

}  // namespace rocemu::daemon
