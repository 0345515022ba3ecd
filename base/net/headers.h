// Numbers of the headers below a transport: Ethernet (IEEE 802.3 and 802.1Q), IPv4 (RFC 791), IPv6
// (RFC 8200), UDP (RFC 768), and the registers of IANA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocemu {

inline constexpr size_t kMacsBytes = 12;  // both MAC addresses; a VLAN tag comes behind them
inline constexpr size_t kEthernetBytes = 14;
inline constexpr size_t kVlanTagBytes = 4;
inline constexpr size_t kMinFrameBytes = 60;  // the least that Ethernet carries, without the FCS
inline constexpr size_t kIpv4Bytes = 20;      // without options
inline constexpr size_t kIpv6Bytes = 40;
inline constexpr size_t kUdpBytes = 8;
inline constexpr size_t kTcpBytes = 20;  // without options

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint16_t kEtherTypeServiceVlan = 0x88a8;  // 802.1ad

inline constexpr uint8_t kIpProtocolHopByHop = 0;
inline constexpr uint8_t kIpProtocolIcmp = 1;
inline constexpr uint8_t kIpProtocolIgmp = 2;
inline constexpr uint8_t kIpProtocolTcp = 6;
inline constexpr uint8_t kIpProtocolUdp = 17;
inline constexpr uint8_t kIpProtocolIcmpv6 = 58;

inline constexpr uint8_t kIpv4VersionAndLength = 0x45;  // version 4, five words: no options
inline constexpr uint16_t kIpv4DontFragment = 0x4000;
inline constexpr uint16_t kIpv4FragmentMask = 0x3fff;  // more fragments, fragment offset

}  // namespace rocemu
