#include "emulator/wire/run.h"

#include <algorithm>

namespace rocemu::wire {

namespace {

using enum Operation;

// The packets that a message of several has: with what a single one is called, and the last.
struct Parts {
  Operation first;
  Operation middle;
};

bool may_be_run(const OpcodeTraits& traits) {
  return traits.payload && !traits.deth &&
         (traits.kind == MessageKind::send || traits.kind == MessageKind::write ||
          traits.kind == MessageKind::response);
}

Parts parts_of(MessageKind kind) {
  if (kind == MessageKind::send) return {send_first, send_middle};
  if (kind == MessageKind::write) return {write_first, write_middle};
  return {read_response_first, read_response_middle};
}

Operation last_of(Operation operation) {
  switch (operation) {
    case send_only:
      return send_last;
    case send_only_imm:
      return send_last_imm;
    case send_only_invalidate:
      return send_last_invalidate;
    case write_only:
      return write_last;
    case write_only_imm:
      return write_last_imm;
    case read_response_only:
      return read_response_last;
    default:
      return operation;
  }
}

// The opcode does not carry those any more.
void drop_headers(const OpcodeTraits& traits, ExtendedHeaders& ext) {
  if (!traits.reth) ext.reth = {};
  if (!traits.aeth) ext.aeth = {};
  if (!traits.imm) ext.immediate = 0;
  if (!traits.ieth) ext.invalidate = {};
}

}  // namespace

uint8_t opcode_in_run(uint8_t opcode, uint32_t index, uint32_t packets) {
  const auto transport = static_cast<Transport>(opcode & 0xe0);
  const auto operation = static_cast<Operation>(opcode & 0x1f);
  const OpcodeTraits& traits = traits_of(opcode);
  const Parts parts = parts_of(traits.kind);
  const bool first = index == 0 && traits.starts;
  const bool last = index + 1 == packets && traits.ends;
  if (first && last) return opcode;
  if (first) return bth_opcode(transport, parts.first);
  return bth_opcode(transport, last ? last_of(operation) : parts.middle);
}

size_t extra_header_bytes(uint8_t opcode, uint32_t packets, size_t before_bth_bytes) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < packets; ++i)
    bytes +=
        before_bth_bytes + traits_of(opcode_in_run(opcode, i, packets)).header_bytes + kIcrcBytes;
  return bytes - (before_bth_bytes + traits_of(opcode).header_bytes + kIcrcBytes);
}

ParseError parse_run(std::span<const std::byte> frame, uint32_t segment_bytes, Packet& run) {
  const ParseError error = parse_frame(frame, run, kMaxRunBytes);
  if (error != ParseError::none) return error;
  const size_t packets =
      segment_bytes == 0 ? 0 : (run.payload.size() + segment_bytes - 1) / segment_bytes;
  const bool whole = run.traits().ends || run.payload.size() % std::max(segment_bytes, 1u) == 0;
  if (!may_be_run(run.traits()) || packets < 2 || packets > kMaxRunPackets || !whole)
    return ParseError::bad_payload;
  run.packets = static_cast<uint32_t>(packets);
  run.segment_bytes = segment_bytes;
  return ParseError::none;
}

Packet packet_of_run(const Packet& run, uint32_t index) {
  const bool last = index + 1 == run.packets;
  Packet packet = run;
  packet.packets = 1;
  packet.segment_bytes = 0;
  packet.bth.opcode = opcode_in_run(run.bth.opcode, index, run.packets);
  packet.bth.psn = run.bth.psn + index;
  packet.bth.ack_request = last && run.bth.ack_request;
  packet.bth.solicited = last && run.bth.solicited;
  packet.payload = run.payload.subspan(size_t{index} * run.segment_bytes);
  if (!last) packet.payload = packet.payload.first(run.segment_bytes);
  packet.bth.pad_bytes = static_cast<uint8_t>(-packet.payload.size() & 3);
  const OpcodeTraits& traits = packet.traits();
  drop_headers(traits, packet.ext);
  const size_t run_bytes = run.traits().header_bytes + run.payload.size() + run.bth.pad_bytes;
  const size_t bytes = traits.header_bytes + packet.payload.size() + packet.bth.pad_bytes;
  packet.l3 = run.l3.first(run.l3.size() - run_bytes + bytes);
  return packet;
}

}  // namespace rocemu::wire
