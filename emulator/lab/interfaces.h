// Makes and sets up interfaces of the network namespace that the process is in, by rtnetlink(7).
// All calls throw std::system_error with what the kernel says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace rocemu::lab {

void add_bridge(const std::string& name);
// Makes a veth, whose other end is `peer` in the network namespace of a process.
void add_veth(const std::string& name, unsigned mtu_bytes, const std::string& peer, pid_t pid);
// 0 leaves the MTU as it is. With `bridge` the interface becomes a port of that.
void bring_up(const std::string& name, unsigned mtu_bytes = 0, const std::string& bridge = {});
// `address` is IPv4's or IPv6's text. No duplicate is looked for, so it can be used at once.
void add_address(const std::string& name, const std::string& address, uint8_t prefix_bits);

}  // namespace rocemu::lab
