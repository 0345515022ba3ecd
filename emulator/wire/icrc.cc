#include "emulator/wire/icrc.h"

#include <isa-l/crc.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "base/byte_order.h"
#include "emulator/wire/headers.h"

namespace rocemu::wire {
namespace {

constexpr std::byte kOnes{0xff};
constexpr size_t kLrhBytes = 8;  // stands as ones where InfiniBand has its local route header
constexpr size_t kMaxMaskedBytes = kLrhBytes + kIpv6Bytes + kUdpBytes + kBthBytes;
// Up to so many bytes behind the masked headers are copied to go into one call of ISA-L with them.
constexpr size_t kCopiedBytes = 64;

void mask_ipv4(std::byte* header) {
  header[1] = kOnes;  // TOS
  header[8] = kOnes;  // TTL
  header[10] = header[11] = kOnes;
}

void mask_ipv6(std::byte* header) {
  header[0] |= std::byte{0x0f};  // version stays; traffic class and flow label are ones
  header[1] = header[2] = header[3] = kOnes;
  header[7] = kOnes;  // hop limit
}

bool is_ipv4(std::span<const std::byte> l3) { return load_u8(l3.data()) >> 4 == 4; }

// ISA-L's AVX-512 functions leave the upper halves of the vector registers in use, and on some CPUs
// each change between such code and the SSE code of everything else then costs some 60 ns.
#ifdef __x86_64__
[[gnu::target("avx")]] void release_upper_halves() { _mm256_zeroupper(); }
const bool has_upper_halves = __builtin_cpu_supports("avx") != 0;
#else
void release_upper_halves() {}
constexpr bool has_upper_halves = false;
#endif

// crc32_gzip_refl inverts its argument and its result, as zlib's crc32 does: a CRC goes on where
// the last call stopped when that call's result is handed in.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  crc = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  if (has_upper_halves) release_upper_halves();
  return crc;
}

}  // namespace

uint32_t compute_icrc(std::span<const std::byte> l3_without_icrc) {
  assert(l3_without_icrc.size() >= kIpv4Bytes + kUdpBytes + kBthBytes);
  const bool ipv4 = is_ipv4(l3_without_icrc);
  const size_t ip_bytes = ipv4 ? kIpv4Bytes : kIpv6Bytes;
  const size_t headers_bytes = ip_bytes + kUdpBytes + kBthBytes;
  assert(l3_without_icrc.size() >= headers_bytes);

  std::array<std::byte, kMaxMaskedBytes + kCopiedBytes> masked;
  std::fill_n(masked.begin(), kLrhBytes, kOnes);
  std::byte* const ip = masked.data() + kLrhBytes;
  std::memcpy(ip, l3_without_icrc.data(), headers_bytes);
  if (ipv4)
    mask_ipv4(ip);
  else
    mask_ipv6(ip);
  std::byte* const udp = ip + ip_bytes;
  udp[6] = udp[7] = kOnes;     // checksum
  udp[kUdpBytes + 4] = kOnes;  // FECN, BECN and the reserved bits beside them

  const std::span masked_headers = std::span(masked).first(kLrhBytes + headers_bytes);
  const std::span rest = l3_without_icrc.subspan(headers_bytes);
  if (rest.size() > kCopiedBytes) return crc32(crc32(0, masked_headers), rest);
  std::memcpy(masked.data() + masked_headers.size(), rest.data(), rest.size());
  return crc32(0, std::span(masked).first(masked_headers.size() + rest.size()));
}

bool icrc_matches(std::span<const std::byte> l3) {
  if (l3.size() < kIpv4Bytes + kUdpBytes + kBthBytes + kIcrcBytes ||
      (!is_ipv4(l3) && l3.size() < kIpv6Bytes + kUdpBytes + kBthBytes + kIcrcBytes))
    return false;
  const size_t covered_bytes = l3.size() - kIcrcBytes;
  return compute_icrc(l3.first(covered_bytes)) == load_le32(l3.data() + covered_bytes);
}

void store_icrc(std::span<std::byte> l3) {
  assert(l3.size() >= kIcrcBytes);
  const size_t covered_bytes = l3.size() - kIcrcBytes;
  store_le32(l3.data() + covered_bytes, compute_icrc(l3.first(covered_bytes)));
}

void store_datagram_icrc(std::span<std::byte> l3) {
  const size_t ip_bytes = is_ipv4(l3) ? kIpv4Bytes : kIpv6Bytes;
  assert(l3.size() >= ip_bytes + kUdpBytes);
  const size_t datagram_bytes = load_be16(l3.data() + ip_bytes + 4);
  assert(l3.size() >= ip_bytes + datagram_bytes);
  store_icrc(l3.first(ip_bytes + datagram_bytes));
}

}  // namespace rocemu::wire
