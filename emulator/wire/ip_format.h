// Numbers and sums of the layers below the BTH that parsing, building and the ICRC share:
// EtherTypes (IEEE 802), IPv4 (RFC 791), IPv6 (RFC 8200), the IPv4 header checksum (RFC 1071).
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/wire/byte_order.h"
#include "emulator/wire/headers.h"

namespace rocemu::wire {

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;
inline constexpr uint8_t kIpProtocolUdp = 17;
inline constexpr uint8_t kIpv4VersionAndLength = 0x45;  // version 4, five words: no options
inline constexpr uint16_t kIpv4FragmentMask = 0x3fff;   // more fragments, fragment offset

// The sum of an IPv4 header's ten words, carries not folded in.
inline uint32_t ipv4_header_sum(const std::byte* header) {
  uint32_t sum = 0;
  for (size_t i = 0; i < kIpv4Bytes; i += 2) sum += load_be16(header + i);
  return sum;
}

// The ones' complement of `sum` with its carries folded in: what the checksum field holds, and 0
// for the sum over a header whose checksum is right.
inline uint16_t ipv4_checksum(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum += sum >> 16;
  return static_cast<uint16_t>(~sum);
}

}  // namespace rocemu::wire
