// Checks the ICRC of a datagram whose IPv4 identification is not known, as is that of one which
// came through a socket of the kernel: the socket hands out what stands behind the UDP header.
//
// The identification is 16 bits of what the ICRC covers. A CRC is linear, so from the difference
// between the ICRC that came and the one that would be right for identification 0 follows which
// identification makes it right, if any does. That leaves 16 of the 32 bits as a check. For the
// same reason an identification can be changed without the rest of the datagram being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rocemu::wire {

// The identification for which the last four bytes of `l3` are the ICRC of what stands before them,
// whatever identification stands in `l3`. Empty: there is none, or `l3` is no IPv4 datagram. `l3`
// as for icrc_matches().
std::optional<uint16_t> identification_by_icrc(std::span<const std::byte> l3);

// Writes another identification into an IPv4 datagram that has its ICRC, and makes the header's
// checksum and the ICRC those of it. Costs no walk through the datagram. `l3` as above; it must be
// IPv4.
void set_identification(std::span<std::byte> l3, uint16_t identification);

}  // namespace rocemu::wire
