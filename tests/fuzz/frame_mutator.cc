// Mutates frames as libFuzzer does, and then, more often than not, makes lengths and the IPv4
// checksum right again: otherwise hardly any mutation would get past them.
#include <cstddef>
#include <cstdint>
#include <random>

#include "emulator/wire/byte_order.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/ip_format.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size_bytes, size_t max_size_bytes);

namespace {

using namespace rocemu;

void mend(std::byte* frame, size_t size_bytes) {
  size_t l3 = wire::kEthernetBytes;
  if (size_bytes < l3 + wire::kVlanTagBytes + wire::kIpv4Bytes + wire::kUdpBytes) return;
  if (wire::load_be16(frame + 12) == wire::kEtherTypeVlan) l3 += wire::kVlanTagBytes;
  std::byte* const ip = frame + l3;
  const auto datagram_bytes = static_cast<uint32_t>(size_bytes - l3);
  if (wire::load_u8(ip) >> 4 == 4) {
    wire::store_be16(ip + 2, datagram_bytes);
    wire::store_be16(ip + wire::kIpv4Bytes + 4,
                     datagram_bytes - static_cast<uint32_t>(wire::kIpv4Bytes));
    wire::store_be16(ip + 10, 0);
    wire::store_be16(ip + 10, wire::ipv4_checksum(wire::ipv4_header_sum(ip)));
  } else if (wire::load_u8(ip) >> 4 == 6 && datagram_bytes >= wire::kIpv6Bytes + wire::kUdpBytes) {
    const uint32_t udp_bytes = datagram_bytes - static_cast<uint32_t>(wire::kIpv6Bytes);
    wire::store_be16(ip + 4, udp_bytes);
    wire::store_be16(ip + wire::kIpv6Bytes + 4, udp_bytes);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size_bytes, size_t max_size_bytes,
                                          unsigned int seed) {
  size_bytes = LLVMFuzzerMutate(data, size_bytes, max_size_bytes);
  if (std::minstd_rand(seed)() % 4 != 0) mend(reinterpret_cast<std::byte*>(data), size_bytes);
  return size_bytes;
}
