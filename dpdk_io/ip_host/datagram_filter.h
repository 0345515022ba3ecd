// Tells the frames that are the device's from those that are the host's: the same choice that an
// interface port leaves to the kernel's socket filter.
#pragma once

#include <cstdint>

#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {

// A whole UDP datagram to that port. No VLAN tag, no IPv4 options, no fragment, no IPv6 extension
// header. Says nothing of addresses.
inline bool is_datagram_to(uint16_t udp_port, Bytes frame) noexcept {
  constexpr uint16_t kFragmentBits = 0x3fff;
  constexpr uint8_t kIpv4NoOptions = 0x45;
  constexpr size_t kUdpBytes = 8;
  if (frame.size() < kEthernetBytes + kIpv4Bytes + kUdpBytes) return false;
  const uint8_t* const ip = &frame[kEthernetBytes];
  const uint16_t type = ether_type_of(frame);
  if (type == kEtherTypeIpv4)
    return ip[0] == kIpv4NoOptions && ip[9] == kUdp && (get16(&ip[6]) & kFragmentBits) == 0 &&
           get16(&ip[kIpv4Bytes + 2]) == udp_port;
  return type == kEtherTypeIpv6 && frame.size() >= kEthernetBytes + kIpv6Bytes + kUdpBytes &&
         ip[6] == kUdp && get16(&ip[kIpv6Bytes + 2]) == udp_port;
}

}  // namespace rocemu::dpdk_io
