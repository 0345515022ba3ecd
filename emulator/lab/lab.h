// `rocemu lab`: several hosts on this machine, each with a network of its own and an emulated NIC.
//
// A host is a set of namespaces that a process "sleep" keeps alive; its eth0 is one end of a veth
// whose other end is in a bridge. The bridge is in a network namespace, too, so the machine's own
// network is not touched. With impairments eth0 is a tap, and a process the wire between them
// (rocemu-lab-wire). An ordinary user's lab is in a user namespace of its own, in which the user is
// root. Everything else of a lab is in its directory (lab_dir.h).
#pragma once

#include <string>
#include <vector>

namespace rocemu::lab {

// `arguments` are what comes after "rocemu lab". Returns the exit code. Throws cli::Failure and
// std::system_error.
int run(const std::vector<std::string>& arguments);

}  // namespace rocemu::lab
