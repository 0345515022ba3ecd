// Which bits the ICRC covers (IBTA annex A17.3.3). Its value is checked against rxe's frames in
// golden_frames_test.cc.
#include "emulator/wire/icrc.h"

#include <catch2/catch.hpp>
#include <set>

#include "base/byte_order.h"
#include "emulator/wire/packet.h"
#include "tests/unit/wire/sample_frames.h"

namespace rocemu::wire {
namespace {

using test::FrameValues;
using test::Network;
using test::sample;

void flip(test::Frame& frame, size_t bit) {
  frame[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
}

// Bits of a frame, first bit of the IP header 0, that routers may change.
std::set<size_t> masked_bits(bool ipv4) {
  std::set<size_t> bits;
  const auto add = [&bits](size_t first_bit, size_t count) {
    for (size_t i = 0; i < count; ++i) bits.insert(first_bit + i);
  };
  const size_t udp = (ipv4 ? kIpv4Bytes : kIpv6Bytes) * 8;
  if (ipv4) {
    add(8, 8);    // TOS
    add(64, 8);   // TTL
    add(80, 16);  // header checksum
  } else {
    add(4, 8);    // traffic class
    add(12, 20);  // flow label
    add(56, 8);   // hop limit
  }
  add(udp + 48, 16);                 // checksum
  add(udp + kUdpBytes * 8 + 32, 8);  // FECN, BECN, six reserved bits
  return bits;
}

TEST_CASE("What is too short for an ICRC has none") {
  const Network network = GENERATE(Network::ipv4, Network::ipv6);
  const test::Frame frame = sample(network, Operation::send_only).build();
  const auto l3 = std::span(frame).subspan(test::l3_offset_bytes(network));
  for (size_t bytes = 0; bytes < l3.size(); ++bytes) CHECK_FALSE(icrc_matches(l3.first(bytes)));
  CHECK(icrc_matches(l3));
}

TEST_CASE("A flipped bit breaks the ICRC unless routers may change it") {
  const Network network = GENERATE(Network::ipv4, Network::ipv6);
  // An odd length, so that there are pad bytes to cover.
  const auto operation = GENERATE(Operation::write_only_imm, Operation::send_middle);
  test::Frame frame = sample(network, operation, 29).build();
  const size_t l3_bits = test::l3_offset_bytes(network) * 8;
  const std::set<size_t> masked = masked_bits(network == Network::ipv4);
  const auto l3 = std::span(frame).subspan(l3_bits / 8);
  REQUIRE(icrc_matches(l3));

  constexpr size_t kVersionBits = 4;  // a frame with another version does not parse
  size_t unnoticed = 0;
  for (size_t bit = kVersionBits; bit < l3.size() * 8; ++bit) {
    flip(frame, l3_bits + bit);
    const bool matches = icrc_matches(l3);
    if (matches != masked.contains(bit)) {
      CAPTURE(bit);
      CHECK(matches == masked.contains(bit));
    }
    unnoticed += matches;
    flip(frame, l3_bits + bit);
  }
  CHECK(unnoticed == masked.size());
  CHECK(icrc_matches(l3));
}

TEST_CASE("The Ethernet header is not covered, a VLAN tag neither") {
  const test::Frame plain = sample(Network::ipv4, Operation::send_only).build();
  const test::Frame tagged = sample(Network::ipv4_vlan, Operation::send_only).build();
  CHECK(std::equal(plain.end() - kIcrcBytes, plain.end(), tagged.end() - kIcrcBytes));
}

TEST_CASE("store_icrc stores what compute_icrc computes, least significant byte first") {
  test::Frame frame = sample(Network::ipv6, Operation::send_only).build();
  const auto l3 = std::span(frame).subspan(test::l3_offset_bytes(Network::ipv6));
  const auto covered = l3.first(l3.size() - kIcrcBytes);
  l3.back() ^= std::byte{1};
  CHECK_FALSE(icrc_matches(l3));
  store_icrc(l3);
  CHECK(icrc_matches(l3));
  const uint32_t icrc = compute_icrc(covered);
  for (size_t i = 0; i < kIcrcBytes; ++i)
    CHECK(load_u8(&l3[covered.size() + i]) == (icrc >> (8 * i) & 0xff));
}

TEST_CASE("store_datagram_icrc leaves alone what stands behind the datagram") {
  const Network network = GENERATE(Network::ipv4, Network::ipv6);
  test::Frame frame = sample(network, Operation::send_only).build();
  const test::Frame whole = frame;
  const std::byte behind[5]{};
  std::fill_n(frame.end() - kIcrcBytes, kIcrcBytes, std::byte{0x77});
  frame.insert(frame.end(), std::begin(behind), std::end(behind));
  store_datagram_icrc(std::span(frame).subspan(test::l3_offset_bytes(network)));
  CHECK(std::equal(whole.begin(), whole.end(), frame.begin()));
  CHECK(std::equal(std::begin(behind), std::end(behind), frame.end() - std::size(behind)));
}

TEST_CASE("A datagram that ends with its BTH has an ICRC") {
  const Network network = GENERATE(Network::ipv4, Network::ipv6);
  const test::Frame frame = sample(network, Operation::send_only, 0).build();
  CHECK(frame.size() == test::bth_offset_bytes(network) + kBthBytes + kIcrcBytes);
  CHECK(icrc_matches(std::span(frame).subspan(test::l3_offset_bytes(network))));
}

}  // namespace
}  // namespace rocemu::wire
