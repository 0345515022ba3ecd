#include "emulator/wire/build.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "tests/unit/wire/sample_frames.h"

namespace rocemu::wire {
namespace {

using test::FrameValues;
using test::kNetworks;
using test::Network;
using test::sample;

TEST_CASE("A template writes the headers that build_frame writes, whatever the length") {
  for (const Network network : kNetworks) {
    for (const size_t payload_bytes : {0, 1, 100, 1024, 4096}) {
      const FrameValues values = sample(network, Operation::write_only, payload_bytes);
      const test::Frame frame = values.build();
      const HeaderTemplate headers(values.ethernet, values.ip, values.udp);
      REQUIRE(headers.size_bytes() == test::bth_offset_bytes(network));
      CHECK(headers.size_bytes() <= HeaderTemplate::kMaxBytes);
      CHECK(headers.l3_offset_bytes() == test::l3_offset_bytes(network));

      constexpr std::byte kUntouched{0xe7};
      test::Frame written(frame.size(), kUntouched);
      headers.write(written.data(), frame.size() - headers.size_bytes());
      const auto end = written.begin() + static_cast<ptrdiff_t>(headers.size_bytes());
      CHECK(std::equal(written.begin(), end, frame.begin()));
      CHECK(std::all_of(end, written.end(), [](std::byte b) { return b == kUntouched; }));
    }
  }
}

TEST_CASE("The IPv4 checksum of a template is right for every length of a datagram") {
  FrameValues values = sample(Network::ipv4, Operation::send_only);
  const HeaderTemplate headers(values.ethernet, values.ip, values.udp);
  std::array<std::byte, HeaderTemplate::kMaxBytes> written;
  for (size_t after_udp_bytes = 0; after_udp_bytes <= 0xffff - kIpv4Bytes - kUdpBytes;
       ++after_udp_bytes) {
    headers.write(written.data(), after_udp_bytes);
    const std::byte* const l3 = written.data() + headers.l3_offset_bytes();
    if (internet_checksum(ipv4_header_sum(l3)) != 0)
      FAIL("wrong for " << after_udp_bytes << " bytes");
  }
}

TEST_CASE("A frame stands in the buffer as the standards draw it") {
  FrameValues values = sample(Network::ipv6_vlan, Operation::send_only_imm, 5);
  const test::Frame frame = values.build();
  const std::byte* const p = frame.data();
  CHECK(frame.size() == 14 + 4 + 40 + 8 + 12 + 4 + 5 + 3 + 4);
  CHECK(load_be16(p + 12) == 0x8100);
  CHECK(load_be16(p + 14) == 0x6123);
  CHECK(load_be16(p + 16) == 0x86dd);
  CHECK(load_be32(p + 18) == 0x66aa5c3e);  // version 6, class 0x6a, flow label 0xa5c3e
  CHECK(load_be16(p + 22) == 8 + 12 + 4 + 5 + 3 + 4);
  CHECK(load_be16(p + 24) == (17 << 8 | 61));
  const std::byte* const udp = p + 18 + 40;
  CHECK(load_be32(udp) == (0xc123u << 16 | 4791));
  CHECK(load_be32(udp + 4) == (36u << 16 | 0x1d0f));
  const std::byte* const bth = udp + 8;
  CHECK(load_be32(bth) == 0x05f08123);       // SE, M, pad 3, TVer 0
  CHECK(load_be32(bth + 4) == 0xed123abc);   // FECN, BECN, 0x2d, QPN
  CHECK(load_be32(bth + 8) == 0xdafedcba);   // AckReq, 0x5a, PSN
  CHECK(load_le32(bth + 12) == 0x2468ace0);  // untouched: this machine's order
  CHECK(load_be32(bth + 20) >> 24 == load_u8(&values.payload[4]));
  CHECK((load_be32(bth + 20) & 0xffffff) == 0);
}

TEST_CASE("Extended headers stand in the specification's order") {
  std::array<std::byte, 64> buffer{};
  const auto write = [&buffer](Transport transport, Operation operation) {
    const FrameValues values = sample(Network::ipv4, bth_opcode(transport, operation));
    buffer.fill(std::byte{0xe7});
    const size_t bytes = write_transport_headers(buffer.data(), values.bth, values.ext);
    CHECK(bytes == transport_header_bytes(values.bth.opcode));
    CHECK(buffer[bytes] == std::byte{0xe7});
  };
  const std::byte* const ext = buffer.data() + kBthBytes;

  write(Transport::xrc, Operation::write_only_imm);
  CHECK(load_be32(ext) == 0x005a5a01);
  CHECK(load_be64(ext + 4) == 0x0123456789abcdef);
  CHECK(load_be32(ext + 12) == 0x89abcdef);
  CHECK(load_be32(ext + 16) == 0x13579bdf);
  CHECK(load_le32(ext + 20) == 0x2468ace0);

  write(Transport::rc, Operation::compare_swap);
  CHECK(load_be64(ext) == 0xfedcba9876543210);
  CHECK(load_be32(ext + 8) == 0x76543210);
  CHECK(load_be64(ext + 12) == 0x1122334455667788);
  CHECK(load_be64(ext + 20) == 0x99aabbccddeeff01);

  write(Transport::rc, Operation::atomic_acknowledge);
  CHECK(load_be32(ext) == 0x63c0ffee);
  CHECK(load_be64(ext + 4) == 0xa1b2c3d4e5f60718);

  write(Transport::ud, Operation::send_only_imm);
  CHECK(load_be32(ext) == 0x80010000);
  CHECK(load_be32(ext + 4) == 0x00abcdef);
  CHECK(load_le32(ext + 8) == 0x2468ace0);

  write(Transport::rc, Operation::send_only_invalidate);
  CHECK(load_be32(ext) == 0x0badcafe);
}

TEST_CASE("Values that are too wide do not reach into the neighbouring field") {
  FrameValues values = sample(Network::ipv6, bth_opcode(Transport::ud, Operation::send_only), 4);
  const test::Frame expected = values.build();
  values.ip.flow_label |= 0xfff00000;
  values.bth.pad_bytes |= 0xfc;
  values.bth.version |= 0xf0;
  values.bth.reserved6 |= 0xc0;
  values.bth.reserved7 |= 0x80;
  values.bth.destination_qp.value |= 0xff000000;
  values.ext.deth.source_qp.value |= 0xff000000;
  CHECK(values.build() == expected);
}

TEST_CASE("An unknown opcode gets a BTH and nothing else") {
  FrameValues values = sample(Network::ipv4, Operation::send_only, 8);
  values.bth.opcode = 0xff;
  CHECK(transport_header_bytes(0xff) == 0);
  CHECK(values.build().size() ==
        test::bth_offset_bytes(Network::ipv4) + kBthBytes + 8 + kIcrcBytes);
}

}  // namespace
}  // namespace rocemu::wire
