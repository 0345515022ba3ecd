#include "dpdk_io/ip_host/ip_address.h"

#include <algorithm>
#include <cstring>

namespace rocemu::dpdk_io {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool IpAddress::is_ipv4() const noexcept {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
}

IpAddress IpAddress::of_ipv4(const void* four_bytes) noexcept {
  IpAddress address;
  std::ranges::copy(kMappedPrefix, address.bytes.begin());
  std::memcpy(&address.bytes[12], four_bytes, 4);
  return address;
}

IpAddress IpAddress::of_ipv6(const void* sixteen_bytes) noexcept {
  IpAddress address;
  std::memcpy(address.bytes.data(), sixteen_bytes, address.bytes.size());
  return address;
}

}  // namespace rocemu::dpdk_io
