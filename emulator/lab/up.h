// `rocemu lab up` and `down`.
#pragma once

#include <string>
#include <vector>

#include "emulator/lab/lab_dir.h"

namespace rocemu::lab {

struct UpOptions {
  std::string name;
  unsigned hosts = 0;
  bool udp = false;  // the NICs' ports are UDP sockets instead of eth0
  unsigned mtu_bytes = 0;
  std::vector<std::string> impair;
  std::string network;                  // a file
  std::string recovery;                 // as rocemud takes it; empty: its default
  std::vector<std::string> faults;      // each as fault::parse_faults() takes it, of a host or all
  std::string shake;                    // as rocemud takes it; empty: not
  std::string check;                    // --check as of rocemu up, with its value; or empty
  std::vector<std::string> congestion;  // each as rocemud takes it, or HOST=…
};

// Makes a lab, or nothing: whatever fails, what was made is taken down. Throws cli::Failure.
void up(const UpOptions& options);

// Ends the NICs, all other processes on the hosts and the hosts, and removes the directory.
void tear_down(const LabDir& dir);

// Both are for a child process, or for one that becomes the program. The one enters the namespaces
// of a host or of the wire, the other runs rocemu with the NICs of this lab. Throw
// std::system_error and cli::Failure.
void enter(const LabDir& dir, const std::string& holder);
[[noreturn]] void become_rocemu(const LabDir& dir, std::vector<std::string> words);

}  // namespace rocemu::lab
