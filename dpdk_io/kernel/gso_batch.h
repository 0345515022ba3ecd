// GSO batches: several UDP datagrams of one flow that pass through the kernel as one packet, by its
// segmentation offloads (GSO, GRO). The kernel walks its network stack once for a batch, where it
// would walk it for each frame; that is most of what a frame costs. On its way out a batch is cut
// into its frames by the kernel or by the NIC; between two ends on one kernel it never is.
//
// All frames of a batch have the same headers and the same length, but the last, which may be
// shorter. In a batch that is cut the IPv4 identification counts up from the first frame's
// (inet_gso_segment() of Linux), and each frame gets a UDP checksum, which RoCEv2 otherwise omits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

struct rte_mbuf;

namespace rocemu::dpdk_io {

// True since Linux 6.2: packet sockets and UDP sockets then tell a batch from a frame. An older
// kernel gets no batches, since those that would have to take them are on the same kernel.
bool kernel_has_gso() noexcept;

// A checksum at the end of a datagram may cover the IPv4 identification (the ICRC of RoCEv2 does).
// This folder does not know it; whoever makes the ports says how such datagrams are changed and
// checked. `l3` starts at the IP header.
struct IdentificationSeal {
  void (*set)(std::span<std::byte> l3, uint16_t identification) = nullptr;
  bool (*fits)(std::span<const std::byte> l3) = nullptr;
};

inline constexpr unsigned kMaxHeadersBytes = 14 + 40 + 8;  // Ethernet, IPv6, UDP
inline constexpr unsigned kMaxGsoFrames = 64;              // UDP_MAX_SEGMENTS of Linux until 6.8
inline constexpr unsigned kMaxGsoBytes = UINT16_MAX;       // from the IP header on

// The bytes of Ethernet, IP and UDP header of a UDP datagram; 0 when it is none, is a fragment, or
// has IP options. Reads `bytes` only.
unsigned headers_bytes_of(std::span<const std::byte> bytes) noexcept;

// Writes the length of a UDP datagram into its headers, which headers_bytes_of() has measured, and
// the IPv4 header's checksum. The UDP checksum becomes 0.
void write_lengths(std::byte* headers, unsigned headers_bytes, unsigned payload_bytes) noexcept;

// Does the same, but the UDP checksum becomes that of the pseudo header, to which the kernel or the
// NIC adds the rest.
void write_gso_lengths(std::byte* headers, unsigned headers_bytes, unsigned payload_bytes) noexcept;

void write_identification(std::byte* headers, uint16_t identification) noexcept;
uint16_t identification_of(const std::byte* headers) noexcept;
bool is_ipv4(const std::byte* headers) noexcept;

// Answers how many frames from the front of `burst`, which is not empty, can go as one batch; 1:
// the first goes alone. Frames that are in other hands, too, go alone.
unsigned gso_batch_frames(std::span<rte_mbuf* const> burst) noexcept;

// Makes the identifications of a batch's frames count up from `first`; IPv6 has none.
void number_gso_batch(std::span<rte_mbuf* const> batch, uint16_t first,
                      const IdentificationSeal& seal) noexcept;

}  // namespace rocemu::dpdk_io
