// The frame parser and builder: a frame that parses is built again from its values and must mean
// the same; cut anywhere, it must not parse. The input is one Ethernet frame.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/byte_order.h"
#include "emulator/wire/build.h"
#include "emulator/wire/frame_fields.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/packet.h"
#include "emulator/wire/tcp_segment.h"
#include "tests/fuzz/expect.h"

namespace {

using namespace rocemu;
using fuzz::expect;
using wire::Packet;
using wire::ParseError;

using Bytes = std::span<const std::byte>;

bool within(Bytes part, Bytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

std::vector<std::byte> rebuild(const Packet& packet) {
  return wire::build_frame(packet.ethernet, packet.ip, packet.udp, packet.bth, packet.ext,
                           packet.payload, packet.telemetry);
}

bool same(const wire::Bth& a, const wire::Bth& b) {
  return a.opcode == b.opcode && a.solicited == b.solicited && a.mig_req == b.mig_req &&
         a.pad_bytes == b.pad_bytes && a.version == b.version && a.pkey == b.pkey &&
         a.fecn == b.fecn && a.becn == b.becn && a.reserved6 == b.reserved6 &&
         a.destination_qp == b.destination_qp && a.ack_request == b.ack_request &&
         a.reserved7 == b.reserved7 && a.psn == b.psn;
}

bool same(const wire::ExtendedHeaders& a, const wire::ExtendedHeaders& b) {
  return a.reth.virtual_address == b.reth.virtual_address && a.reth.rkey == b.reth.rkey &&
         a.reth.length_bytes == b.reth.length_bytes && a.aeth.syndrome == b.aeth.syndrome &&
         a.aeth.msn == b.aeth.msn && a.atomic.virtual_address == b.atomic.virtual_address &&
         a.atomic.rkey == b.atomic.rkey && a.atomic.swap_or_add == b.atomic.swap_or_add &&
         a.atomic.compare == b.atomic.compare && a.atomic_original == b.atomic_original &&
         a.deth.qkey == b.deth.qkey && a.deth.source_qp == b.deth.source_qp &&
         a.xrc_srq == b.xrc_srq && a.immediate == b.immediate && a.invalidate == b.invalidate;
}

bool same(const wire::Ip& a, const wire::Ip& b) {
  return a.source == b.source && a.destination == b.destination &&
         a.traffic_class == b.traffic_class && a.hop_limit == b.hop_limit &&
         a.flow_label == b.flow_label && a.identification == b.identification &&
         a.flags_fragment == b.flags_fragment;
}

bool same(const Packet& a, const Packet& b) {
  return a.ethernet.destination == b.ethernet.destination &&
         a.ethernet.source == b.ethernet.source && a.ethernet.vlan_tci == b.ethernet.vlan_tci &&
         same(a.ip, b.ip) && a.udp.source_port == b.udp.source_port &&
         a.udp.destination_port == b.udp.destination_port && a.udp.checksum == b.udp.checksum &&
         same(a.bth, b.bth) && same(a.ext, b.ext) && std::ranges::equal(a.payload, b.payload) &&
         std::ranges::equal(a.telemetry, b.telemetry);
}

void check_packet(Bytes frame, const Packet& packet) {
  expect(within(packet.l3, frame), "the datagram lies in the frame");
  expect(within(packet.payload, packet.l3), "the payload lies in the datagram");
  expect(within(packet.telemetry, frame), "telemetry lies in the frame");
  expect(packet.telemetry.empty() || packet.telemetry.data() == packet.l3.data() + packet.l3.size(),
         "telemetry stands behind the datagram");
  expect(packet.payload.size() <= wire::kMaxMtuBytes + wire::kMaxPlaceBytes,
         "the payload fits the largest MTU");
  expect(packet.traits().known, "the opcode is known");
  expect(packet.traits().payload || packet.payload.empty(), "payload only where it may be");
  expect((packet.payload.size() + packet.bth.pad_bytes) % 4 == 0, "payload and pad: whole words");
}

void check_rebuilt(const Packet& packet) {
  const std::vector<std::byte> built = rebuild(packet);
  Packet again;
  expect(wire::parse_frame(built, again) == ParseError::none, "a built frame parses");
  expect(same(packet, again), "a built frame means what it was built from");
  expect(wire::icrc_matches(again.l3), "a built frame has its ICRC");
  expect(rebuild(again) == built, "building is stable");
  if (packet.payload.empty()) return;
  std::vector<std::byte> damaged = built;
  damaged[static_cast<size_t>(again.payload.data() - built.data())] ^= std::byte{0x10};
  expect(wire::parse_frame(damaged, again) == ParseError::none, "the ICRC is not the parser's");
  expect(!wire::icrc_matches(again.l3), "the ICRC covers the payload");
}

void check_cut(Bytes frame, const Packet& packet) {
  const auto end = static_cast<size_t>(packet.l3.data() + packet.l3.size() - frame.data()) +
                   packet.telemetry.size();
  const size_t step = std::max<size_t>(end / 64, 1);
  for (size_t length = end - 1;; length -= std::min(length, step)) {
    const auto cut = std::make_unique<std::byte[]>(length);
    std::copy_n(frame.data(), length, cut.get());
    Packet unspecified;
    expect(wire::parse_frame({cut.get(), length}, unspecified) != ParseError::none,
           "a frame that was cut does not parse");
    if (length == 0) break;
  }
  Packet whole;
  expect(wire::parse_frame(frame.first(end), whole) == ParseError::none && same(packet, whole),
         "what stands behind the datagram does not count");
}

// Headers for TCP segmentation: whatever they are, all is within the frame, and what is done once
// is done.
void check_segment(Bytes frame) {
  const auto copy = std::make_unique<std::byte[]>(frame.size());
  std::ranges::copy(frame, copy.get());
  const std::span segment(copy.get(), frame.size());
  const bool is_tcp = wire::find_tcp(frame).has_value();
  expect(is_tcp || !wire::are_tcp_headers(frame), "no headers are TCP's but those that are found");
  expect(wire::finish_tcp_segment(segment, {}) == is_tcp, "what is found can be finished");
  expect(is_tcp || std::ranges::equal(segment, frame), "what is not found stays as it is");
  const std::vector<std::byte> once(segment.begin(), segment.end());
  if (!is_tcp) return;
  expect(wire::finish_tcp_segment(segment, {}) && std::ranges::equal(segment, once),
         "the first segment is finished once");
  expect(!wire::may_be_roce(segment), "TCP is no RoCE");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const Bytes frame = std::as_bytes(std::span(data, size_bytes));
  check_segment(frame);
  Packet packet;
  const ParseError error = wire::parse_frame(frame, packet);
  expect(wire::to_string(error) != "unknown parse error", "each error has a name");
  if (error != ParseError::none) return 0;
  check_packet(frame, packet);
  check_rebuilt(packet);
  check_cut(frame, packet);
  return 0;
}
