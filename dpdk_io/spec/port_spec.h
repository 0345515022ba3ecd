// A port specification says what a port is linked to, as text: one grammar for the command line and
// the configuration file.
//
//   switch           the in-process switch
//   IFNAME           a kernel network interface, by a packet socket
//   udp:ADDRESS[+ADDRESS...]
//                    UDP sockets of the kernel, bound to these addresses of the machine
//   vdev:SPEC[@NETWORK]
//                    a virtual device of DPDK, as its --vdev option has it
//   pci:BDF[,ARGUMENT=VALUE...][@NETWORK]
//                    a NIC on the PCI bus by DPDK
//
// NETWORK is what nobody tells such devices, separated by commas:
//
//   ADDRESS[/PREFIX][+ADDRESS...]   the port's addresses; a prefix is 24 or 64 if not given
//   gateway=ADDRESS[+ADDRESS]       for destinations in no network of those
//   vlan=ID                         the tag of all frames
//   mtu=BYTES                       what the link carries
//
// The last @ is what counts, so a SPEC with one in it needs a NETWORK.
//
// An interface named like a keyword is written if:IFNAME.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/text.h"
#include "dpdk_io/ip_host/ip_settings.h"

namespace rocemu::dpdk_io {

enum class PortKind { fabric, interface, udp, vdev, pci };

struct PortSpec {
  PortKind kind = PortKind::fabric;
  std::string name{};  // interface, or the device with its arguments as DPDK has them
  std::vector<IpAddress> addresses{};  // for udp
  // The members below are for vdev and pci. Without addresses the port has those that its device
  // has on a switch.
  IpSettings ip{};
  uint16_t vlan_id = 0;    // 0: no tag
  unsigned mtu_bytes = 0;  // 0: the largest that the device takes

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
