// Runs are their packets: what a run is taken apart into is what would have come one by one.
#include "emulator/wire/run.h"

#include <catch2/catch.hpp>
#include <span>
#include <vector>

#include "tests/unit/wire/sample_frames.h"

namespace rocemu::wire {
namespace {

using namespace test;
using enum Operation;

constexpr uint32_t kSegment = 2048;  // two are more than any MTU
constexpr uint32_t kPsn = 0xfffffe;  // the third packet is behind the wrap

struct Message {
  Operation run;
  std::vector<Operation> packets;
};

const Message kMessages[] = {
    {send_only, {send_first, send_middle, send_last}},
    {send_only_imm, {send_first, send_middle, send_last_imm}},
    {send_only_invalidate, {send_first, send_middle, send_last_invalidate}},
    {send_first, {send_first, send_middle, send_middle}},
    {send_middle, {send_middle, send_middle, send_middle}},
    {send_last, {send_middle, send_middle, send_last}},
    {send_last_imm, {send_middle, send_middle, send_last_imm}},
    {write_only, {write_first, write_middle, write_last}},
    {write_only_imm, {write_first, write_middle, write_last_imm}},
    {write_first, {write_first, write_middle, write_middle}},
    {write_middle, {write_middle, write_middle, write_middle}},
    {write_last_imm, {write_middle, write_middle, write_last_imm}},
    {read_response_only, {read_response_first, read_response_middle, read_response_last}},
    {read_response_first, {read_response_first, read_response_middle, read_response_middle}},
    {read_response_middle, {read_response_middle, read_response_middle, read_response_middle}},
    {read_response_last, {read_response_middle, read_response_middle, read_response_last}},
};

// Three packets, of which the last is a shorter one where the message may end with it.
FrameValues run_of(Network network, Transport transport, Operation operation) {
  const uint8_t opcode = bth_opcode(transport, operation);
  const size_t bytes = traits_of(opcode).ends ? 2 * kSegment + 37 : 3 * kSegment;
  FrameValues values = sample(network, opcode, bytes);
  values.bth.psn = Psn(kPsn);
  values.bth.ack_request = true;
  values.bth.solicited = true;
  return values;
}

FrameValues packet_of(const FrameValues& run, Operation operation, uint32_t index) {
  FrameValues values = run;
  const auto from = run.payload.begin() + static_cast<ptrdiff_t>(index * kSegment);
  values.payload.assign(from, index == 2 ? run.payload.end() : from + kSegment);
  values.bth.opcode = bth_opcode(static_cast<Transport>(run.bth.opcode & 0xe0), operation);
  values.bth.pad_bytes = static_cast<uint8_t>(-values.payload.size() & 3);
  values.bth.psn = run.bth.psn + index;
  values.bth.ack_request = values.bth.solicited = index == 2;
  return values;
}

// What a packet is, as bytes: headers and payload.
std::vector<std::byte> rebuilt(const Packet& packet) {
  return build_frame(packet.ethernet, packet.ip, packet.udp, packet.bth, packet.ext,
                     packet.payload);
}

}  // namespace

TEST_CASE("A run is taken apart into the packets that it stands for") {
  const Network network = GENERATE(from_range(std::begin(kNetworks), std::end(kNetworks)));
  const Transport transport = GENERATE(Transport::rc, Transport::xrc);
  for (const Message& message : kMessages) {
    CAPTURE(static_cast<int>(message.run));
    const FrameValues values = run_of(network, transport, message.run);
    const Frame frame = values.build();
    Packet run;
    REQUIRE(parse_frame(frame, run) == ParseError::bad_payload);
    REQUIRE(parse_run(frame, kSegment, run) == ParseError::none);
    REQUIRE(run.packets == 3);
    size_t frames_bytes = 0;
    for (uint32_t i = 0; i < run.packets; ++i) {
      CAPTURE(i);
      const Packet packet = packet_of_run(run, i);
      const Frame alone = packet_of(values, message.packets[i], i).build();
      Packet parsed;
      REQUIRE(parse_frame(alone, parsed) == ParseError::none);
      CHECK(rebuilt(packet) == alone);
      CHECK(packet.packets == 1);
      CHECK(packet.l3.size() == parsed.l3.size());
      CHECK(packet.ext.reth.rkey == parsed.ext.reth.rkey);
      CHECK(packet.ext.aeth.msn == parsed.ext.aeth.msn);
      CHECK(packet.ext.immediate == parsed.ext.immediate);
      CHECK(packet.ext.invalidate == parsed.ext.invalidate);
      frames_bytes += alone.size();
    }
    // The run is padded as its last packet is.
    CHECK(frame.size() + extra_header_bytes(values.bth.opcode, 3, bth_offset_bytes(network)) ==
          frames_bytes);
  }
}

TEST_CASE("What cannot be a run is none") {
  Packet packet;
  const auto parse = [&](Operation operation, size_t bytes, uint32_t segment_bytes,
                         Transport transport = Transport::rc) {
    return parse_run(sample(Network::ipv4, bth_opcode(transport, operation), bytes).build(),
                     segment_bytes, packet);
  };
  CHECK(parse(send_only, 2 * kSegment, kSegment) == ParseError::none);
  // A single packet, and none at all.
  CHECK(parse(send_only, kSegment, kSegment) == ParseError::bad_payload);
  CHECK(parse(send_only, 0, kSegment) == ParseError::bad_payload);
  CHECK(parse(send_only, kSegment, 0) == ParseError::bad_payload);
  // Only the last packet of a message may be shorter.
  CHECK(parse(send_first, 2 * kSegment, kSegment) == ParseError::none);
  CHECK(parse(send_first, 2 * kSegment - 4, kSegment) == ParseError::bad_payload);
  CHECK(parse(send_last, 2 * kSegment - 4, kSegment) == ParseError::none);
  // Too long, too many.
  CHECK(parse(send_only, kMaxRunBytes, 4096) == ParseError::none);
  CHECK(parse(send_only, kMaxRunBytes + 4, 4096) == ParseError::bad_payload);
  CHECK(parse(send_only, kMaxRunPackets * 256, 256) == ParseError::none);
  CHECK(parse(send_only, kMaxRunPackets * 256 + 4, 256) == ParseError::bad_payload);
  // What is no message of several packets.
  CHECK(parse(atomic_write, 8, 4) == ParseError::bad_payload);
  CHECK(parse(acknowledge, 0, 4) == ParseError::bad_payload);
  CHECK(parse(send_only, 2 * kSegment, kSegment, Transport::ud) == ParseError::bad_payload);
  CHECK(parse_run(sample(Network::ipv4, kCnpOpcode).build(), 4, packet) == ParseError::bad_payload);
}

TEST_CASE("A packet that comes after a run is a single one") {
  Packet packet;
  REQUIRE(parse_run(sample(Network::ipv4, send_only, 2 * kSegment).build(), kSegment, packet) ==
          ParseError::none);
  REQUIRE(parse_frame(sample(Network::ipv4, send_only).build(), packet) == ParseError::none);
  CHECK(packet.packets == 1);
  CHECK(packet.segment_bytes == 0);
}

}  // namespace rocemu::wire
