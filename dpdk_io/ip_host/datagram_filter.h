// Tells the frames that are the device's from those that are the host's: the same choice that an
// interface port leaves to the kernel's socket filter.
#pragma once

#include <cstdint>

#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {

// A whole UDP datagram to that port. No VLAN tag, no IPv4 options, no fragment, no IPv6 extension
// header. Says nothing of addresses.
inline bool is_datagram_to(uint16_t udp_port, Bytes frame) noexcept {
  if (frame.size() < kEthernetBytes + kIpv4Bytes + kUdpBytes) return false;
  const uint8_t* const ip = &frame[kEthernetBytes];
  const uint16_t type = ether_type_of(frame);
  if (type == kEtherTypeIpv4)
    return ip[0] == kIpv4VersionAndLength && ip[9] == kIpProtocolUdp &&
           (load_be16(&ip[6]) & kIpv4FragmentMask) == 0 &&
           load_be16(&ip[kIpv4Bytes + 2]) == udp_port;
  return type == kEtherTypeIpv6 && frame.size() >= kEthernetBytes + kIpv6Bytes + kUdpBytes &&
         ip[6] == kIpProtocolUdp && load_be16(&ip[kIpv6Bytes + 2]) == udp_port;
}

}  // namespace rocemu::dpdk_io
