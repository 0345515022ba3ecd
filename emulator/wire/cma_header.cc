#include "emulator/wire/cma_header.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"

namespace rocemu::wire {
namespace {

constexpr uint8_t kVersion = 0;
constexpr size_t kSource = 4;
constexpr size_t kDestination = 20;

// An IPv4 address stands in the last four bytes, behind zeros.
Gid load_address(const std::byte* p, bool ipv6) {
  Gid gid;
  std::memcpy(gid.bytes.data(), p, 16);
  if (!ipv6) {
    std::fill_n(gid.bytes.begin(), 10, uint8_t{0});
    gid.bytes[10] = gid.bytes[11] = 0xff;
  }
  return gid;
}

void store_address(std::byte* p, const Gid& gid, bool ipv6) {
  std::memcpy(p, gid.bytes.data(), 16);
  if (!ipv6) std::memset(p, 0, 12);
}

}  // namespace

bool parse_cma_header(std::span<const std::byte> bytes, CmaHeader& header) {
  const std::byte* const p = bytes.data();
  const unsigned ip_version = load_u8(p + 1) >> 4;
  if (load_u8(p) != kVersion || (ip_version != 4 && ip_version != 6)) return false;
  header.ipv6 = ip_version == 6;
  header.source_port = load_be16(p + 2);
  header.source = load_address(p + kSource, header.ipv6);
  header.destination = load_address(p + kDestination, header.ipv6);
  return true;
}

void build_cma_header(const CmaHeader& header, std::span<std::byte> bytes) {
  std::byte* const p = bytes.data();
  store_u8(p, kVersion);
  store_u8(p + 1, header.ipv6 ? 0x60 : 0x40);
  store_be16(p + 2, header.source_port);
  store_address(p + kSource, header.source, header.ipv6);
  store_address(p + kDestination, header.destination, header.ipv6);
}

}  // namespace rocemu::wire
