#include "dpdk_io/ip_host/datagram_filter.h"

#include <catch2/catch.hpp>

#include "tests/unit/ip_host/sample_host.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint16_t kPort = 4791;

Frame datagram(const char* source, const char* destination, uint16_t port) {
  Frame frame =
      build_ip({kPeerMac, kOwnMac, ip(source), ip(destination), kIpProtocolUdp}, Frame(16));
  store_be16(&frame[kEthernetBytes + (ip(source).is_ipv4() ? kIpv4Bytes : kIpv6Bytes) + 2], port);
  return frame;
}

}  // namespace

TEST_CASE("whole datagrams to the port are let through, by either IP") {
  for (const Frame& frame :
       {datagram("10.0.0.2", "10.0.0.1", kPort), datagram("fd00::2", "fd00::1", kPort)})
    CHECK(is_datagram_to(kPort, frame));
  for (const Frame& frame :
       {datagram("10.0.0.2", "10.0.0.1", 53), datagram("fd00::2", "fd00::1", 53)})
    CHECK_FALSE(is_datagram_to(kPort, frame));
}

TEST_CASE("fragments, options, tags and other protocols are not") {
  const Frame good = datagram("10.0.0.2", "10.0.0.1", kPort);
  const auto changed = [&](size_t offset, uint8_t value) {
    Frame frame = good;
    frame[offset] = value;
    return is_datagram_to(kPort, frame);
  };
  CHECK_FALSE(changed(kEthernetBytes, 0x46));
  CHECK_FALSE(changed(kEthernetBytes + 6, 0x20));
  CHECK_FALSE(changed(kEthernetBytes + 7, 0x01));
  CHECK_FALSE(changed(kEthernetBytes + 9, 6));
  CHECK_FALSE(changed(12, 0x81));
  for (size_t length = 0; length < kEthernetBytes + 28; ++length)
    CHECK_FALSE(is_datagram_to(kPort, Bytes(good).first(length)));
}

}  // namespace rocemu::dpdk_io
