// The headers of a frame that a switch reads, and its changes to them: ECN's CE and the cut of a
// trimmed frame. Frames are whatever hosts send: nothing is read beyond the bytes that there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::network {

struct PacketHeaders {
  uint64_t flow_hash = 0;  // hash of addresses, protocol and ports; of the MACs when it is not IP
  uint8_t ip_offset = 0;   // 0: not IPv4 or IPv6
  uint8_t udp_offset = 0;  // 0: not UDP, or a fragment
  uint8_t dscp = 0;
  uint8_t pcp = 0;           // 0 without a VLAN tag
  bool ecn_capable = false;  // ECT(0), ECT(1) or CE (RFC 3168, 5)
  // The bytes behind the UDP datagram of a longer IP packet, if they are no more than path
  // telemetry may be.
  uint16_t surplus_offset = 0;
  uint8_t surplus_bytes = 0;
};

// So many bytes at most are read.
inline constexpr size_t kMaxHeaderBytes = 14 + 4 + 60 + 4;

// Precondition: `bytes` has an Ethernet header.
PacketHeaders parse_headers(std::span<const std::byte> bytes) noexcept;

// 01-80-C2-00-00-00 to -0F, which no bridge forwards (IEEE 802.1Q-2018, 8.6.3): pauses go there.
bool is_link_local(std::span<const std::byte> bytes) noexcept;

// Sets CE, and corrects IPv4's checksum (RFC 1624); the ICRC leaves both out (IBTA vol 1, A17.3.3).
// False when it was set. Precondition: ecn_capable.
bool mark_congestion(std::byte* ip_header) noexcept;

// Makes the lengths of the IP and UDP headers those of a frame that ends after `length_bytes`, and
// sets its DSCP. There is no UDP checksum then. Precondition: both headers are there, and within
// the length.
void cut_headers(std::byte* frame, size_t ip_offset, size_t udp_offset, size_t length_bytes,
                 uint8_t dscp) noexcept;

// Both halves of the product: a number below `n`, evenly, of a hash.
inline uint32_t below(uint64_t hash, uint32_t n) noexcept {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(hash) * n >> 64);
}
// Every bit of the result hangs on every bit of `x` (the end of splitmix64).
inline uint64_t mix(uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace rocemu::network
