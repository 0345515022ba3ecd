// At least one frame for each ParseError; truncated ones are in parse_test.cc.
#include <catch2/catch.hpp>
#include <set>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "emulator/wire/packet.h"
#include "tests/unit/wire/sample_frames.h"

namespace rocemu::wire {
namespace {

using test::FrameValues;
using test::kNetworks;
using test::Network;
using test::sample;

ParseError parse(const test::Frame& frame) {
  Packet packet;
  return parse_frame(frame, packet);
}

// An IPv4 sample with one byte of its IP header changed and the checksum right again.
ParseError parse_with_ipv4_byte(size_t offset, uint8_t value) {
  test::Frame frame = sample(Network::ipv4, Operation::send_only).build();
  frame[kEthernetBytes + offset] = std::byte{value};
  test::fix_ipv4_checksum(frame, Network::ipv4);
  return parse(frame);
}

ParseError parse_with_ipv6_byte(size_t offset, uint8_t value) {
  test::Frame frame = sample(Network::ipv6, Operation::send_only).build();
  frame[kEthernetBytes + offset] = std::byte{value};
  return parse(frame);
}

TEST_CASE("not_ip: ARP, RoCE v1, a second tag, a service tag") {
  for (const uint16_t ether_type : {0x0806, 0x8915, 0x88a8}) {
    test::Frame frame = sample(Network::ipv4, Operation::send_only).build();
    store_be16(&frame[12], ether_type);
    CHECK(parse(frame) == ParseError::not_ip);
  }
  test::Frame frame = sample(Network::ipv4_vlan, Operation::send_only).build();
  store_be16(&frame[16], kEtherTypeVlan);
  CHECK(parse(frame) == ParseError::not_ip);
}

TEST_CASE("bad_ip_header: IPv4 version, header length, options, total length") {
  CHECK(parse_with_ipv4_byte(0, 0x65) == ParseError::bad_ip_header);
  CHECK(parse_with_ipv4_byte(0, 0x44) == ParseError::bad_ip_header);
  CHECK(parse_with_ipv4_byte(0, 0x46) == ParseError::bad_ip_header);
  test::Frame frame = sample(Network::ipv4, Operation::send_only).build();
  store_be16(&frame[kEthernetBytes + 2], kIpv4Bytes - 1);
  test::fix_ipv4_checksum(frame, Network::ipv4);
  CHECK(parse(frame) == ParseError::bad_ip_header);
}

TEST_CASE("bad_ip_header: IPv6 version, IPv4-mapped addresses") {
  CHECK(parse_with_ipv6_byte(0, 0x46) == ParseError::bad_ip_header);
  const Gid mapped{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}};
  FrameValues values = sample(Network::ipv6, Operation::send_only);
  values.ip.source = mapped;
  CHECK(parse(values.build()) == ParseError::bad_ip_header);
  values = sample(Network::ipv6, Operation::send_only);
  values.ip.destination = mapped;
  CHECK(parse(values.build()) == ParseError::bad_ip_header);

  test::Frame both = sample(Network::ipv6, Operation::send_only).build();
  std::byte* const addresses = &both[kEthernetBytes + 8];
  for (size_t i = 0; i < 16; ++i) addresses[i] = addresses[16 + i] = std::byte{mapped.bytes[i]};
  CHECK(parse(both) == ParseError::bad_ip_header);
}

TEST_CASE("truncated: an IP length beyond the frame's end") {
  CHECK(parse_with_ipv4_byte(2, 0x40) == ParseError::truncated);
  CHECK(parse_with_ipv6_byte(4, 0x40) == ParseError::truncated);
}

TEST_CASE("fragment: more fragments, or an offset") {
  CHECK(parse_with_ipv4_byte(6, 0x20) == ParseError::fragment);
  CHECK(parse_with_ipv4_byte(6, 0x01) == ParseError::fragment);
  CHECK(parse_with_ipv4_byte(7, 0x01) == ParseError::fragment);
}

TEST_CASE("bad_ip_checksum: any other value of the checksum field") {
  const test::Frame good = sample(Network::ipv4_vlan, Operation::send_only).build();
  for (size_t bit = 0; bit < 16; ++bit) {
    test::Frame frame = good;
    frame[kEthernetBytes + kVlanTagBytes + 10 + bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK(parse(frame) == ParseError::bad_ip_checksum);
  }
}

TEST_CASE("not_roce: another protocol, an IPv6 extension header, another port") {
  CHECK(parse_with_ipv4_byte(9, 6) == ParseError::not_roce);
  for (const uint8_t next_header : {0, 6, 43, 44, 58, 60})
    CHECK(parse_with_ipv6_byte(6, next_header) == ParseError::not_roce);
  for (const Network network : kNetworks) {
    FrameValues values = sample(network, Operation::send_only);
    values.udp.destination_port = kRoceUdpPort + 1;
    CHECK(parse(values.build()) == ParseError::not_roce);
  }
}

TEST_CASE("not_roce: IGMP, which has IPv4 options") {
  test::Frame frame = sample(Network::ipv4, Operation::send_only).build();
  frame[kEthernetBytes] = std::byte{0x46};
  frame[kEthernetBytes + 9] = std::byte{2};
  CHECK(parse(frame) == ParseError::not_roce);
}

TEST_CASE("bad_udp_length: one more or less than the IP header says, nothing") {
  for (const Network network : kNetworks) {
    const test::Frame good = sample(network, Operation::send_only).build();
    const size_t at = test::bth_offset_bytes(network) - 4;
    const uint32_t right = load_be16(&good[at]);
    for (const uint32_t wrong : {right - 1, right + 1, right - 4, 0u, 7u, 0xffffu}) {
      test::Frame frame = good;
      store_be16(&frame[at], wrong);
      CHECK(parse(frame) == ParseError::bad_udp_length);
    }
  }
}

TEST_CASE("bad_version: a TVer other than 0") {
  for (uint8_t version = 1; version < 16; ++version) {
    FrameValues values = sample(Network::ipv4, Operation::send_only);
    values.bth.version = version;
    CHECK(parse(values.build()) == ParseError::bad_version);
  }
}

TEST_CASE("unknown_opcode: each that is reserved or of RD") {
  size_t unknown = 0;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    if (traits_of(static_cast<uint8_t>(opcode)).known) continue;
    FrameValues values = sample(Network::ipv6, Operation::send_only);
    values.bth.opcode = static_cast<uint8_t>(opcode);
    CHECK(parse(values.build()) == ParseError::unknown_opcode);
    ++unknown;
  }
  CHECK(unknown == 256 - 63);
}

TEST_CASE("bad_payload: a payload or a pad where there may be none") {
  size_t opcodes = 0;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const OpcodeTraits& traits = traits_of(static_cast<uint8_t>(opcode));
    if (!traits.known || traits.payload) continue;
    FrameValues values = sample(Network::ipv4, static_cast<uint8_t>(opcode));
    CHECK(parse(values.build()) == ParseError::none);
    values.payload.resize(4);
    CHECK(parse(values.build()) == ParseError::bad_payload);
    values.payload.resize(1);
    values.bth.pad_bytes = 3;
    CHECK(parse(values.build()) == ParseError::bad_payload);
    ++opcodes;
  }
  CHECK(opcodes == 11);
}

TEST_CASE("bad_payload: more pad bytes than there are bytes") {
  for (uint8_t pad_bytes = 1; pad_bytes < 4; ++pad_bytes) {
    test::Frame frame = sample(Network::ipv4, Operation::send_only, 0).build();
    frame[test::bth_offset_bytes(Network::ipv4) + 1] |= static_cast<std::byte>(pad_bytes << 4);
    CHECK(parse(frame) == ParseError::bad_payload);
  }
}

TEST_CASE("bad_payload: payload and pad that are not whole words") {
  for (size_t payload_bytes = 8; payload_bytes < 12; ++payload_bytes) {
    for (uint8_t pad_bytes = 0; pad_bytes < 4; ++pad_bytes) {
      FrameValues values = sample(Network::ipv6, Operation::send_last, payload_bytes);
      values.bth.pad_bytes = pad_bytes;
      const bool whole = (payload_bytes + pad_bytes) % 4 == 0;
      CHECK(parse(values.build()) == (whole ? ParseError::none : ParseError::bad_payload));
    }
  }
}

TEST_CASE("bad_payload: longer than the largest MTU") {
  CHECK(parse(sample(Network::ipv4, Operation::send_only, 4097).build()) ==
        ParseError::bad_payload);
  CHECK(parse(sample(Network::ipv4, Operation::send_only, 60000).build()) ==
        ParseError::bad_payload);
}

TEST_CASE("bad_payload: a CNP with other than 16 reserved bytes") {
  FrameValues values = sample(Network::ipv4, kCnpOpcode);
  CHECK(parse(values.build()) == ParseError::none);
  for (const size_t bytes : {0, 4, 12, 20}) {
    values.payload.resize(bytes);
    CHECK(parse(values.build()) == ParseError::bad_payload);
  }
}

TEST_CASE("Every error has a name of its own") {
  std::set<std::string_view> names;
  for (auto error = static_cast<unsigned>(ParseError::none);
       error <= static_cast<unsigned>(ParseError::bad_payload); ++error)
    CHECK(names.insert(to_string(static_cast<ParseError>(error))).second);
  CHECK_FALSE(names.contains("unknown parse error"));
}

}  // namespace
}  // namespace rocemu::wire
