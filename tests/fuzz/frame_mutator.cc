// Mutates frames as libFuzzer does, and then, more often than not, makes lengths and the IPv4
// checksum right again: otherwise hardly any mutation would get past them. Path telemetry at the
// frame's end stays behind the datagram.
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "base/net/path_telemetry.h"
#include "emulator/wire/headers.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size_bytes, size_t max_size_bytes);

namespace {

using namespace rocemu;

uint32_t surplus_bytes(std::span<const std::byte> packet) {
  for (unsigned hops = 0; hops <= kMaxTelemetryHops; ++hops) {
    const size_t bytes = telemetry_bytes(hops);
    if (bytes <= packet.size() && is_path_telemetry(packet.last(bytes)))
      return static_cast<uint32_t>(bytes);
  }
  return 0;
}

void mend(std::byte* frame, size_t size_bytes) {
  size_t l3 = kEthernetBytes;
  if (size_bytes < l3 + kVlanTagBytes + kIpv4Bytes + kUdpBytes) return;
  if (load_be16(frame + 12) == kEtherTypeVlan) l3 += kVlanTagBytes;
  std::byte* const ip = frame + l3;
  const auto datagram_bytes = static_cast<uint32_t>(size_bytes - l3);
  if (load_u8(ip) >> 4 == 4) {
    const uint32_t udp_bytes = datagram_bytes - static_cast<uint32_t>(kIpv4Bytes);
    store_be16(ip + 2, datagram_bytes);
    store_be16(ip + kIpv4Bytes + 4,
               udp_bytes - surplus_bytes({ip + kIpv4Bytes + kUdpBytes, udp_bytes - kUdpBytes}));
    store_be16(ip + 10, 0);
    store_be16(ip + 10, internet_checksum(ipv4_header_sum(ip)));
  } else if (load_u8(ip) >> 4 == 6 && datagram_bytes >= kIpv6Bytes + kUdpBytes) {
    const uint32_t udp_bytes = datagram_bytes - static_cast<uint32_t>(kIpv6Bytes);
    store_be16(ip + 4, udp_bytes);
    store_be16(ip + kIpv6Bytes + 4,
               udp_bytes - surplus_bytes({ip + kIpv6Bytes + kUdpBytes, udp_bytes - kUdpBytes}));
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size_bytes, size_t max_size_bytes,
                                          unsigned int seed) {
  size_bytes = LLVMFuzzerMutate(data, size_bytes, max_size_bytes);
  if (std::minstd_rand(seed)() % 4 != 0) mend(reinterpret_cast<std::byte*>(data), size_bytes);
  return size_bytes;
}
