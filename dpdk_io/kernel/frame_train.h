// Trains: several UDP datagrams of one flow that pass through the kernel as one packet. The kernel
// calls this segmentation offload (GSO, GRO). It walks its network stack once for a train, where it
// would walk it for each frame; that is most of what a frame costs. On its way out a train is cut
// into its frames by the kernel or by the NIC; between two ends on one kernel it never is.
//
// All frames of a train have the same headers and the same length, but the last, which may be
// shorter. In a train that is cut the IPv4 identification counts up from the first frame's
// (inet_gso_segment() of Linux), and each frame gets a UDP checksum, which RoCEv2 otherwise omits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

struct rte_mbuf;

namespace rocemu::dpdk_io {

// Packet sockets and UDP sockets tell trains since Linux 6.2; a kernel before that gets none, since
// who would have to take them is on the same one.
bool kernel_has_trains() noexcept;

// What a datagram has at its end may cover the IPv4 identification. This folder does not know it;
// who makes the ports says how such datagrams are changed and checked. `l3` starts at the IP
// header.
struct IdentificationSeal {
  void (*set)(std::span<std::byte> l3, uint16_t identification) = nullptr;
  bool (*fits)(std::span<const std::byte> l3) = nullptr;
};

inline constexpr unsigned kMaxHeadersBytes = 14 + 40 + 8;  // Ethernet, IPv6, UDP
inline constexpr unsigned kMaxTrainFrames = 64;            // UDP_MAX_SEGMENTS of Linux until 6.8
inline constexpr unsigned kMaxTrainBytes = UINT16_MAX;     // from the IP header on

// The bytes of Ethernet, IP and UDP header of a UDP datagram; 0 when it is none, is a fragment, or
// has IP options. Reads `bytes` only.
unsigned headers_bytes_of(std::span<const std::byte> bytes) noexcept;

// Writes the length of a UDP datagram into its headers, which headers_bytes_of() has measured, and
// the IPv4 header's checksum. The UDP checksum becomes 0.
void write_lengths(std::byte* headers, unsigned headers_bytes, unsigned payload_bytes) noexcept;

// As above, and the UDP checksum becomes that of the pseudo header, to which the kernel or the NIC
// adds the rest.
void write_train_lengths(std::byte* headers, unsigned headers_bytes,
                         unsigned payload_bytes) noexcept;

void write_identification(std::byte* headers, uint16_t identification) noexcept;
uint16_t identification_of(const std::byte* headers) noexcept;
bool is_ipv4(const std::byte* headers) noexcept;

// How many frames from the front of `burst`, which is not empty, can go as one train; 1: the first
// goes alone. Frames that are in other hands, too, go alone.
unsigned train_frames(std::span<rte_mbuf* const> burst) noexcept;

// Makes the identifications of a train's frames count up from `first`, IPv6 has none.
void number_train(std::span<rte_mbuf* const> train, uint16_t first,
                  const IdentificationSeal& seal) noexcept;

}  // namespace rocemu::dpdk_io
