#include "emulator/wire/icrc_identification.h"

#include <catch2/catch.hpp>
#include <span>
#include <vector>

#include "base/byte_order.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/icrc.h"

namespace rocemu::wire {
namespace {

// An IPv4 datagram with some bytes in it, sealed with identification `sealed`, that shows `shown`.
std::vector<std::byte> datagram(size_t size, uint16_t sealed, uint16_t shown) {
  std::vector<std::byte> l3(size);
  for (size_t i = 0; i < size; ++i) l3[i] = static_cast<std::byte>(i * 7 + 3);
  l3[0] = std::byte{0x45};
  store_be16(&l3[4], sealed);
  store_icrc(l3);
  store_be16(&l3[4], shown);
  return l3;
}

// Of the IPv4 header (RFC 791).
uint16_t checksum(const std::vector<std::byte>& l3) {
  uint32_t sum = 0;
  for (size_t i = 0; i < kIpv4Bytes; i += 2)
    if (i != 10) sum += load_be16(&l3[i]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

}  // namespace

TEST_CASE("the ICRC tells which identification it was made for") {
  for (const size_t size : {44u, 48u, 1068u, 4140u})
    for (const uint16_t sealed : {0, 1, 0x80, 0x100, 0x1234, 0x8000, 0xffff})
      for (const uint16_t shown : {0, 0x4321}) {
        INFO(size << " bytes, " << sealed << " shown as " << shown);
        CHECK(identification_by_icrc(datagram(size, sealed, shown)) == sealed);
      }
}

TEST_CASE("another change than that of the identification is found") {
  unsigned missed = 0;
  for (size_t at = 20; at < 300; ++at) {
    if (at >= 26 && at < 28) continue;  // the UDP checksum is not covered
    if (at == 32) continue;             // nor are FECN and BECN
    std::vector<std::byte> l3 = datagram(300, 0x1234, 0);
    l3[at] ^= std::byte{0x10};
    missed += identification_by_icrc(l3).has_value();
  }
  CHECK(missed <= 1);  // 277 changes, of which one in 65536 passes
}

TEST_CASE("an identification is changed as if the datagram had been made with it") {
  for (const size_t size : {44u, 48u, 1068u, 4140u, 9000u})
    for (const uint16_t before : {0, 1, 0x1234, 0xffff})
      for (const uint16_t after : {0, 1, 14, 0x100, 0x1235, 0xffff}) {
        INFO(size << " bytes, " << before << " to " << after);
        std::vector<std::byte> l3 = datagram(size, before, before);
        store_be16(&l3[10], checksum(l3));
        set_identification(l3, after);
        CHECK(load_be16(&l3[4]) == after);
        CHECK(load_be16(&l3[10]) == checksum(l3));
        CHECK(icrc_matches(l3));
      }
}

TEST_CASE("IPv6 has no identification") {
  std::vector<std::byte> l3 = datagram(100, 1, 1);
  l3[0] = std::byte{0x60};
  CHECK_FALSE(identification_by_icrc(l3));
}

}  // namespace rocemu::wire
