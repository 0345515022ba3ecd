// TCP segmentation: what each frame has of its own, and headers that are not TCP's.
#include "emulator/wire/tcp_segment.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <vector>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "base/net/headers.h"

namespace rocemu::wire {
namespace {

using TcpBytes = std::vector<std::byte>;

struct TcpHeaderShape {
  size_t vlan_tags = 0;
  bool ipv6 = false;
  size_t ip_option_bytes = 0;
  size_t tcp_option_bytes = 0;

  size_t l3() const { return kEthernetBytes + vlan_tags * kVlanTagBytes; }
  size_t l4() const { return l3() + (ipv6 ? kIpv6Bytes : kIpv4Bytes + ip_option_bytes); }
  size_t end() const { return l4() + kTcpBytes + tcp_option_bytes; }
};

// Each byte that is not a field below is one that must come through as it is.
TcpBytes tcp_headers(const TcpHeaderShape& shape) {
  TcpBytes bytes(shape.end(), std::byte{0x5a});
  std::byte* const p = bytes.data();
  for (size_t i = 0; i < shape.vlan_tags; ++i)
    store_be16(p + 12 + i * kVlanTagBytes,
               i + 1 < shape.vlan_tags ? kEtherTypeServiceVlan : kEtherTypeVlan);
  store_be16(p + shape.l3() - 2, shape.ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4);
  std::byte* const ip = p + shape.l3();
  if (shape.ipv6) {
    store_u8(ip, 0x60);
    store_u8(ip + 6, kIpProtocolTcp);
  } else {
    store_u8(ip, static_cast<uint8_t>(0x45 + shape.ip_option_bytes / 4));
    store_be16(ip + 4, 0xfffe);  // identification, which wraps
    store_be16(ip + 6, kIpv4DontFragment);
    store_u8(ip + 9, kIpProtocolTcp);
  }
  std::byte* const tcp = p + shape.l4();
  store_be32(tcp + 4, 0xffff'ffff);  // sequence number, which wraps
  store_u8(tcp + 12, static_cast<uint8_t>((kTcpBytes + shape.tcp_option_bytes) / 4 << 4));
  store_u8(tcp + 13, 0x80 | 0x10 | 0x08 | 0x01);  // CWR ACK PSH FIN
  return bytes;
}

TcpBytes tcp_frame(const TcpHeaderShape& shape, size_t payload_bytes, const TcpSegment& segment) {
  TcpBytes frame = tcp_headers(shape);
  for (size_t i = 0; i < payload_bytes; ++i) frame.push_back(static_cast<std::byte>(i * 7));
  REQUIRE(finish_tcp_segment(frame, segment));
  return frame;
}

// The sum over the pseudo header and all of TCP (RFC 9293, 3.1; RFC 8200, 8.1).
uint16_t tcp_checksum_of(const TcpBytes& frame, const TcpHeaderShape& shape) {
  const std::byte* const ip = frame.data() + shape.l3();
  const size_t tcp_bytes = frame.size() - shape.l4();
  const uint32_t addresses = shape.ipv6 ? sum16(ip + 8, 32) : sum16(ip + 12, 8);
  return internet_checksum(sum16(frame.data() + shape.l4(), tcp_bytes,
                                 addresses + kIpProtocolTcp + static_cast<uint32_t>(tcp_bytes)));
}

TEST_CASE("A TCP segment has lengths, sequence number, identification and checksums of its own") {
  for (const TcpHeaderShape& shape :
       {TcpHeaderShape{}, TcpHeaderShape{1, false, 8, 12}, TcpHeaderShape{2, false, 40, 40},
        TcpHeaderShape{0, true, 0, 0}, TcpHeaderShape{1, true, 0, 12}}) {
    for (const size_t payload_bytes : {0, 1, 1000, 1461}) {
      const TcpBytes frame = tcp_frame(shape, payload_bytes, {3, 4383, false});
      const std::byte* const ip = frame.data() + shape.l3();
      if (shape.ipv6) {
        CHECK(load_be16(ip + 4) == frame.size() - shape.l4());
      } else {
        CHECK(load_be16(ip + 2) == frame.size() - shape.l3());
        CHECK(load_be16(ip + 4) == 1);
        CHECK(internet_checksum(sum16(ip, shape.l4() - shape.l3())) == 0);
      }
      CHECK(load_be32(frame.data() + shape.l4() + 4) == 4382);
      CHECK(tcp_checksum_of(frame, shape) == 0);
    }
  }
}

TEST_CASE("The first TCP segment alone has CWR, the last one FIN and PSH") {
  const TcpHeaderShape shape;
  const auto flags = [&](const TcpSegment& segment) {
    return load_u8(tcp_frame(shape, 10, segment).data() + shape.l4() + 13);
  };
  CHECK(flags({0, 0, false}) == (0x80 | 0x10));
  CHECK(flags({1, 10, false}) == 0x10);
  CHECK(flags({2, 20, true}) == (0x10 | 0x08 | 0x01));
  CHECK(flags({0, 0, true}) == (0x80 | 0x10 | 0x08 | 0x01));
}

TEST_CASE("What a TCP segment does not own comes through") {
  const TcpHeaderShape shape{1, false, 4, 4};
  const TcpBytes headers = tcp_headers(shape);
  const TcpBytes frame = tcp_frame(shape, 5, {0, 0, true});
  std::vector<size_t> changed;
  for (size_t i = 0; i < headers.size(); ++i)
    if (frame[i] != headers[i]) changed.push_back(i - shape.l3());
  const size_t tcp = shape.l4() - shape.l3();
  CHECK(changed == std::vector<size_t>{2, 3, 10, 11, tcp + 16, tcp + 17});
}

TEST_CASE("Headers other than TCP's, or cut short, or with something behind, are none") {
  for (const TcpHeaderShape& shape : {TcpHeaderShape{2, false, 40, 40}, TcpHeaderShape{1, true}}) {
    const TcpBytes whole = tcp_headers(shape);
    CHECK(are_tcp_headers(whole));
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      CHECK_FALSE(are_tcp_headers(std::span(whole).first(bytes)));
      TcpBytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
      CHECK_FALSE(finish_tcp_segment(cut, {}));
    }
    TcpBytes longer = whole;
    longer.push_back({});
    CHECK_FALSE(are_tcp_headers(longer));

    const auto with = [&](size_t at, uint8_t value) {
      TcpBytes bytes = whole;
      store_u8(bytes.data() + at, value);
      return are_tcp_headers(bytes);
    };
    CHECK_FALSE(with(shape.l3() - 1, 0x06));                   // ARP
    CHECK_FALSE(with(shape.l3(), 0x55));                       // IP version 5
    CHECK_FALSE(with(shape.l3() + (shape.ipv6 ? 6 : 9), 17));  // UDP
    CHECK_FALSE(with(shape.l4() + 12, 0x40));                  // TCP header of four words
    if (!shape.ipv6) CHECK_FALSE(with(shape.l3(), 0x44));      // IPv4 header of four words
    if (!shape.ipv6) CHECK_FALSE(with(shape.l3() + 7, 1));     // a fragment
    if (!shape.ipv6) CHECK_FALSE(with(shape.l3() + 6, 0x20));  // one that is not the last
  }
}

}  // namespace
}  // namespace rocemu::wire
