// The captures of Linux rxe in tests/data/rxe-pcaps: an implementation that is not ours says what
// frames look like.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/byte_order.h"
#include "emulator/wire/build.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/packet.h"
#include "tests/unit/data.h"
#include "tests/unit/wire/pcap_file.h"

namespace rocemu::wire {
namespace {

constexpr size_t kFiles = 36;
constexpr size_t kFrames = 488;

const std::filesystem::path kCaptures = rocemu::test::data_folder() / "rxe-pcaps";

std::map<std::string, std::vector<test::Frame>> all_captures() {
  std::map<std::string, std::vector<test::Frame>> captures;
  for (const auto& entry : std::filesystem::directory_iterator(kCaptures))
    if (entry.path().extension() == ".pcap")
      captures[entry.path().filename()] = test::read_pcap(entry.path());
  return captures;
}

// Calls `check` with every frame of every capture; fails if there are not as many as there should.
template <typename Check>
void for_every_frame(Check check) {
  const auto captures = all_captures();
  size_t frames = 0;
  for (const auto& [name, contents] : captures) {
    for (size_t i = 0; i < contents.size(); ++i) {
      INFO(name << ", frame " << i + 1);
      check(contents[i]);
    }
    frames += contents.size();
  }
  CHECK(captures.size() == kFiles);
  CHECK(frames == kFrames);
}

Packet parse(const test::Frame& frame) {
  Packet packet;
  REQUIRE(to_string(parse_frame(frame, packet)) == to_string(ParseError::none));
  return packet;
}

TEST_CASE("Every frame of rxe parses and has the ICRC that we compute") {
  for_every_frame([](const test::Frame& frame) {
    const Packet packet = parse(frame);
    CHECK(packet.l3.data() == frame.data() + kEthernetBytes);
    CHECK(packet.l3.size() == frame.size() - kEthernetBytes);
    const size_t covered_bytes = packet.l3.size() - kIcrcBytes;
    CHECK(compute_icrc(packet.l3.first(covered_bytes)) ==
          load_le32(packet.l3.data() + covered_bytes));
    CHECK(icrc_matches(packet.l3));
  });
}

TEST_CASE("Building from the parsed values gives every frame of rxe again, byte for byte") {
  for_every_frame([](const test::Frame& frame) {
    const Packet packet = parse(frame);
    CHECK(build_frame(packet.ethernet, packet.ip, packet.udp, packet.bth, packet.ext,
                      packet.payload) == frame);
  });
}

TEST_CASE("The captures have the opcodes, the IP versions and the pads that they are kept for") {
  std::set<unsigned> opcodes;
  std::set<unsigned> pads;
  size_t ipv6_frames = 0;
  for_every_frame([&](const test::Frame& frame) {
    const Packet packet = parse(frame);
    opcodes.insert(packet.bth.opcode);
    pads.insert(packet.bth.pad_bytes);
    ipv6_frames += !packet.ip.source.is_ipv4_mapped();
  });
  CHECK(opcodes == std::set<unsigned>{0,  1,  2,  3,  4,  6,  7,  8,  9,  10,  11,
                                      12, 13, 14, 15, 16, 17, 18, 19, 20, 100, 101});
  CHECK(pads == std::set<unsigned>{0, 3});
  CHECK(ipv6_frames == 37);
}

TEST_CASE("A WRITE FIRST of rxe, field by field") {
  const auto frames = test::read_pcap(kCaptures / "rc-write-1024.pcap");
  REQUIRE(frames.size() == 12);
  const Packet packet = parse(frames[0]);
  CHECK(packet.ethernet.source == MacAddress{0x52, 0x54, 0x00, 0x77, 0x00, 0x02});
  CHECK(packet.ethernet.destination == MacAddress{0x52, 0x54, 0x00, 0x77, 0x00, 0x03});
  CHECK_FALSE(packet.ethernet.vlan_tci);
  CHECK(packet.ip.source.ipv4() == Ipv4Address{192, 168, 77, 2});
  CHECK(packet.ip.destination.ipv4() == Ipv4Address{192, 168, 77, 3});
  CHECK(packet.ip.flags_fragment == 0x4000);
  CHECK(packet.ip.hop_limit == 64);
  CHECK(packet.udp.destination_port == 4791);
  CHECK(packet.udp.checksum == 0);
  CHECK(packet.transport() == Transport::rc);
  CHECK(packet.operation() == Operation::write_first);
  CHECK(packet.bth.pkey == 0xffff);
  CHECK(packet.bth.psn == Psn(0x123456));
  CHECK_FALSE(packet.bth.ack_request);
  CHECK(packet.ext.reth.length_bytes == 5000);
  CHECK(packet.payload.size() == 1024);
}

TEST_CASE("The PSNs of rxe wrap after 0xffffff") {
  const auto frames = test::read_pcap(kCaptures / "rc-send-psnwrap.pcap");
  REQUIRE(frames.size() == 12);
  for (size_t i = 0; i < 10; ++i) CHECK(parse(frames[i]).bth.psn == Psn(0xfffffe) + i);
  CHECK(parse(frames[10]).bth.psn == Psn(2));
  CHECK(parse(frames[11]).bth.psn == Psn(7));
}

TEST_CASE("The acknowledgements of rxe carry their syndromes") {
  const auto rnr = test::read_pcap(kCaptures / "rnr-nak.pcap");
  REQUIRE(rnr.size() == 32);
  CHECK(parse(rnr[1]).ext.aeth.syndrome == (syndrome::kRnr | 24));
  CHECK(parse(rnr[3]).ext.aeth.syndrome == syndrome::kNakSequence);
  CHECK(parse(rnr[31]).ext.aeth.syndrome == syndrome::kAck);
}

TEST_CASE("A MAD of rxe has the Q_Key and the QPN of QP1") {
  const auto frames = test::read_pcap(kCaptures / "cm-rping-ipv6.pcap");
  REQUIRE(frames.size() == 29);
  const Packet packet = parse(frames[0]);
  CHECK(packet.transport() == Transport::ud);
  CHECK(packet.ext.deth.qkey == 0x80010000);
  CHECK(packet.ext.deth.source_qp == Qpn{1});
  CHECK(packet.bth.destination_qp == Qpn{1});
  CHECK(packet.payload.size() == 256);
  CHECK(packet.ip.source.bytes[0] == 0xfe);
  CHECK(packet.ip.source.bytes[15] == 2);
}

}  // namespace
}  // namespace rocemu::wire
