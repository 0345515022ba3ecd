// The Internet checksum (RFC 1071).
#pragma once

#include <span>

#include "base/byte_order.h"
#include "base/net/headers.h"
#include "base/net/ip_address.h"

namespace rocemu {

// The sum of 16-bit words, carries not folded in; an odd byte at the end is a word's first. Sums of
// up to 64 KiB and `sum` below 2^31 do not overflow.
template <Byte B>
inline uint32_t sum16(const B* bytes, size_t count, uint32_t sum = 0) noexcept {
  size_t i = 0;
  for (; i + 1 < count; i += 2) sum += load_be16(bytes + i);
  if (i < count) sum += uint32_t{load_u8(bytes + i)} << 8;
  return sum;
}
inline uint32_t sum16(std::span<const uint8_t> bytes, uint32_t sum = 0) noexcept {
  return sum16(bytes.data(), bytes.size(), sum);
}

// The sum of an IPv4 header without options.
inline uint32_t ipv4_header_sum(const std::byte* header) noexcept {
  return sum16(header, kIpv4Bytes);
}

// The ones' complement of `sum` with its carries folded in: what a checksum field holds, and 0 for
// the sum over bytes whose checksum is right.
inline uint16_t internet_checksum(uint32_t sum) noexcept {
  sum = (sum & 0xffff) + (sum >> 16);
  sum += sum >> 16;
  return static_cast<uint16_t>(~sum);
}

// The sum of the pseudo header of an IPv6 packet with `length` bytes of payload (RFC 8200, 8.1).
inline uint32_t pseudo_header_sum(const IpAddress& source, const IpAddress& destination,
                                  size_t length, uint8_t protocol) noexcept {
  const auto bytes = static_cast<uint32_t>(length);
  return sum16(source.bytes, sum16(destination.bytes, (bytes >> 16) + (bytes & 0xffff) + protocol));
}

}  // namespace rocemu
