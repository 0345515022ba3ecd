// The invariant CRC of RoCEv2 (IBTA annex A17.3.3): CRC-32 over 8 bytes of ones, then the packet
// from the IP header to the last pad byte, with the fields that routers change taken as ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::wire {

// Computes the ICRC of a datagram. `l3` starts at the IP header and ends before the ICRC; it holds
// at least the IP, UDP and BTH headers. The result is in the order in which it is stored: write it
// little-endian.
uint32_t compute_icrc(std::span<const std::byte> l3_without_icrc);

// True when the last four bytes of `l3` (Packet::l3) are the ICRC of what stands before them. False
// when it is too short to have one: it may be any datagram.
bool icrc_matches(std::span<const std::byte> l3);

// Computes the ICRC of `l3` without its last four bytes and stores it there.
void store_icrc(std::span<std::byte> l3);

// The same for a packet that may have more behind its datagram: the datagram's length is that of
// its UDP header. Precondition: the packet is as write_transport_headers() and HeaderTemplate have
// made it.
void store_datagram_icrc(std::span<std::byte> l3);

}  // namespace rocemu::wire
