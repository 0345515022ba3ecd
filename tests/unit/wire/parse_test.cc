// Frames that parse, and frames cut or mutated anywhere.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "base/byte_order.h"
#include "emulator/wire/packet.h"
#include "tests/unit/wire/sample_frames.h"

namespace rocemu::wire {
namespace {

using test::FrameValues;
using test::kNetworks;
using test::Network;
using test::sample;

TEST_CASE("What is built parses to the same values, for every opcode and network") {
  size_t opcodes = 0;
  Packet packet;  // one for all: nothing may be left over from the frame before
  for (unsigned value = 0; value < 256; ++value) {
    const auto opcode = static_cast<uint8_t>(value);
    if (!traits_of(opcode).known) continue;
    ++opcodes;
    for (const Network network : kNetworks) {
      CAPTURE(value, static_cast<int>(network));
      const FrameValues values = sample(network, opcode, 61);
      const test::Frame frame = values.build();
      REQUIRE(parse_frame(frame, packet) == ParseError::none);
      CHECK(packet.ethernet.vlan_tci == values.ethernet.vlan_tci);
      CHECK(packet.ip.source == values.ip.source);
      CHECK(packet.ip.destination == values.ip.destination);
      CHECK(packet.ip.traffic_class == 0x6a);
      CHECK(packet.ip.hop_limit == 61);
      CHECK(packet.ip.flow_label == values.ip.flow_label);
      CHECK(packet.bth.psn == Psn(0xfedcba));
      CHECK(packet.bth.destination_qp == Qpn{0x123abc});
      CHECK(std::equal(packet.payload.begin(), packet.payload.end(), values.payload.begin(),
                       values.payload.end()));
      CHECK(build_frame(packet.ethernet, packet.ip, packet.udp, packet.bth, packet.ext,
                        packet.payload) == frame);
    }
  }
  CHECK(opcodes == 63);
}

TEST_CASE("Extended headers that an opcode does not carry are zero") {
  Packet packet;
  REQUIRE(parse_frame(sample(Network::ipv4, Operation::write_only_imm).build(), packet) ==
          ParseError::none);
  CHECK(packet.ext.reth.length_bytes != 0);
  CHECK(packet.ext.immediate != 0);
  REQUIRE(parse_frame(sample(Network::ipv4, Operation::send_only).build(), packet) ==
          ParseError::none);
  CHECK(packet.ext.reth.length_bytes == 0);
  CHECK(packet.ext.reth.virtual_address == 0);
  CHECK(packet.ext.immediate == 0);
}

TEST_CASE("Ethernet padding after the datagram is ignored") {
  const Network network = GENERATE(from_range(std::begin(kNetworks), std::end(kNetworks)));
  const test::Frame frame = sample(network, Operation::send_only, 0).build();
  test::Frame padded = frame;
  padded.resize(frame.size() + 18, std::byte{0xa5});
  Packet packet;
  REQUIRE(parse_frame(padded, packet) == ParseError::none);
  CHECK(packet.payload.empty());
  CHECK(packet.l3.size() == frame.size() - test::l3_offset_bytes(network));
}

TEST_CASE("The UDP checksum may be anything, 0 included") {
  for (const uint16_t checksum : {0x0000, 0x0001, 0xffff}) {
    FrameValues values = sample(Network::ipv6, Operation::send_only);
    values.udp.checksum = checksum;
    Packet packet;
    CHECK(parse_frame(values.build(), packet) == ParseError::none);
    CHECK(packet.udp.checksum == checksum);
  }
}

TEST_CASE("DF and the reserved flag of IPv4 are no fragment") {
  for (const uint16_t flags : {0x0000, 0x4000, 0x8000, 0xc000}) {
    FrameValues values = sample(Network::ipv4, Operation::send_only);
    values.ip.flags_fragment = flags;
    Packet packet;
    CHECK(parse_frame(values.build(), packet) == ParseError::none);
    CHECK(packet.ip.flags_fragment == flags);
  }
}

TEST_CASE("A payload of the largest MTU parses") {
  Packet packet;
  CHECK(parse_frame(sample(Network::ipv6, Operation::send_only, 4096).build(), packet) ==
        ParseError::none);
  CHECK(packet.payload.size() == 4096);
}

TEST_CASE("A frame cut off anywhere is truncated, and nothing behind the cut is read") {
  size_t cuts = 0;
  for (const Network network : kNetworks) {
    for (const Operation operation :
         {Operation::send_only, Operation::write_only_imm, Operation::compare_swap,
          Operation::atomic_acknowledge, Operation::acknowledge}) {
      const test::Frame frame = sample(network, operation, 9).build();
      for (size_t bytes = 0; bytes < frame.size(); ++bytes) {
        // A buffer of just this size on the heap: AddressSanitizer sees a read behind its end.
        const test::Frame cut(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(bytes));
        Packet packet;
        const ParseError error = parse_frame(cut, packet);
        if (error != ParseError::truncated) {
          CAPTURE(bytes, static_cast<int>(network), static_cast<int>(operation));
          CHECK(to_string(error) == to_string(ParseError::truncated));
        }
        ++cuts;
      }
    }
  }
  CHECK(cuts > 1500);
}

// As above, with lengths in the headers that agree with the cut: only the BTH's own check is left.
TEST_CASE("A datagram too short for the headers of its opcode is truncated") {
  size_t datagrams = 0;
  for (const Network network : {Network::ipv4, Network::ipv6}) {
    for (unsigned value = 0; value < 256; ++value) {
      const auto opcode = static_cast<uint8_t>(value);
      if (!traits_of(opcode).known) continue;
      const FrameValues values = sample(network, opcode, 0);
      const test::Frame frame = values.build();
      const HeaderTemplate headers(values.ethernet, values.ip, values.udp);
      const size_t needed_bytes = transport_header_bytes(opcode) + kIcrcBytes;
      for (size_t bytes = 0; bytes < needed_bytes; ++bytes) {
        test::Frame cut(frame.begin(),
                        frame.begin() + static_cast<ptrdiff_t>(headers.size_bytes() + bytes));
        headers.write(cut.data(), bytes);
        Packet packet;
        if (parse_frame(cut, packet) != ParseError::truncated) {
          CAPTURE(value, bytes);
          CHECK(parse_frame(cut, packet) == ParseError::truncated);
        }
        ++datagrams;
      }
    }
  }
  CHECK(datagrams > 2000);
}

bool lies_within(std::span<const std::byte> inner, std::span<const std::byte> outer) {
  return inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

TEST_CASE("Whatever parses after a mutation has its spans inside the frame") {
  std::mt19937 random(20250117);
  size_t parsed = 0;
  size_t refused = 0;
  for (unsigned round = 0; round < 20000; ++round) {
    const Network network = kNetworks[round % 4];
    const auto operation = static_cast<Operation>(random() % 0x15);
    test::Frame frame = sample(network, operation, random() % 64).build();
    for (unsigned n = random() % 3 + 1; n > 0; --n)
      frame[random() % frame.size()] = static_cast<std::byte>(random());
    if (round % 2 == 0 && test::is_ipv4(network)) test::fix_ipv4_checksum(frame, network);

    Packet packet;
    const ParseError error = parse_frame(frame, packet);
    (error == ParseError::none ? parsed : refused) += 1;
    if (error != ParseError::none) continue;
    const bool sound = lies_within(packet.l3, frame) && lies_within(packet.payload, packet.l3) &&
                       packet.traits().known &&
                       packet.payload.size() <= kMaxMtuBytes + kMaxPlaceBytes &&
                       (packet.traits().payload || packet.payload.empty()) &&
                       (packet.payload.size() + packet.bth.pad_bytes) % 4 == 0;
    if (!sound) FAIL("round " << round);
  }
  CHECK(parsed > 1000);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace rocemu::wire
