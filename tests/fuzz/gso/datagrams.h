// Makes of an input what the kernel would hand to a port's socket, and what must become of it.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/fuzz/byte_source.h"

namespace rocemu::fuzz {

using Bytes = std::vector<std::byte>;

// Ethernet, IP and UDP header, with lengths for that payload.
Bytes make_headers(bool ipv4, uint16_t identification, size_t payload_bytes);

// A UDP payload of at least kMinSealedBytes that ends in the ICRC for these headers and that
// identification.
inline constexpr size_t kMinSealedBytes = 16;
Bytes sealed_payload(const Bytes& headers, uint16_t identification, size_t bytes, uint32_t seed);

// A packet with headers in front, or of the payload alone.
struct Arriving {
  Bytes headers;  // as they are, or those that will be put in front
  Bytes packet;   // what the socket hands out, its prefix included
  unsigned segment_bytes = 0;
  bool sealed = false;     // each datagram in it has its ICRC
  bool counts_up = false;  // and identifications count up; otherwise they are all the same
};

// Anything: headers may be cut or altered, sizes are any.
Arriving arbitrary(ByteSource& input, unsigned prefix_bytes, bool headers_come, bool ipv4);

// Stands in for recvmsg(): fills the message's parts. Returns how many bytes fitted.
unsigned deliver(const mmsghdr& message, std::span<const std::byte> packet);

}  // namespace rocemu::fuzz
