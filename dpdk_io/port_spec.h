// What a port is linked to, as text: one grammar for the command line and the configuration file.
//
//   switch           the in-process switch
//   IFNAME           a kernel network interface, by a packet socket
//   udp:ADDRESS[+ADDRESS...]   UDP sockets of the kernel, bound to these addresses of the machine
//   vdev:SPEC        a virtual DPDK device
//   pci:BDF          a PCI device by DPDK
//
// An interface named like a keyword is written if:IFNAME.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk_io/ip_address.h"

namespace rocemu::dpdk_io {

enum class PortKind { fabric, interface, udp, vdev, pci };

struct PortSpec {
  PortKind kind = PortKind::fabric;
  std::string name;                  // interface, vdev arguments or PCI address
  std::vector<IpAddress> addresses;  // udp

  bool operator==(const PortSpec&) const = default;
};

// DEVICE=SPEC
struct PortAssignment {
  std::string device;
  PortSpec spec;
};

struct ParsedPort {
  std::optional<PortAssignment> assignment;
  std::string error;  // when there is none: one line for the user
};

ParsedPort parse_port(std::string_view text);

std::string to_text(const PortSpec& spec);

}  // namespace rocemu::dpdk_io
