// The opcode table against the specification's: IBTA vol 1 table 35, annex A14 for XRC, annex A17
// for CNP. The rows are written out here on purpose.
#include "emulator/wire/opcode.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>

#include "emulator/wire/build.h"

namespace rocemu::wire {
namespace {

struct Row {
  std::string headers;
  size_t bytes = 0;  // the BTH's twelve included
};

const std::map<uint8_t, Row> kSpecification = {
    // Reliable connection
    {0x00, {"payload", 12}},
    {0x01, {"payload", 12}},
    {0x02, {"payload", 12}},
    {0x03, {"imm payload", 16}},
    {0x04, {"payload", 12}},
    {0x05, {"imm payload", 16}},
    {0x06, {"reth payload", 28}},
    {0x07, {"payload", 12}},
    {0x08, {"payload", 12}},
    {0x09, {"imm payload", 16}},
    {0x0a, {"reth payload", 28}},
    {0x0b, {"reth imm payload", 32}},
    {0x0c, {"reth", 28}},
    {0x0d, {"aeth payload", 16}},
    {0x0e, {"payload", 12}},
    {0x0f, {"aeth payload", 16}},
    {0x10, {"aeth payload", 16}},
    {0x11, {"aeth", 16}},
    {0x12, {"aeth atomic_ack", 24}},
    {0x13, {"atomic", 40}},
    {0x14, {"atomic", 40}},
    {0x16, {"ieth payload", 16}},
    {0x17, {"ieth payload", 16}},
    {0x1c, {"feth reth", 32}},
    {0x1d, {"reth payload", 28}},
    // Unreliable connection
    {0x20, {"payload", 12}},
    {0x21, {"payload", 12}},
    {0x22, {"payload", 12}},
    {0x23, {"imm payload", 16}},
    {0x24, {"payload", 12}},
    {0x25, {"imm payload", 16}},
    {0x26, {"reth payload", 28}},
    {0x27, {"payload", 12}},
    {0x28, {"payload", 12}},
    {0x29, {"imm payload", 16}},
    {0x2a, {"reth payload", 28}},
    {0x2b, {"reth imm payload", 32}},
    // Unreliable datagram
    {0x64, {"deth payload", 20}},
    {0x65, {"deth imm payload", 24}},
    // Congestion notification packet; its payload are 16 reserved bytes
    {0x81, {"payload", 12}},
    // Extended reliable connection
    {0xa0, {"xrceth payload", 16}},
    {0xa1, {"xrceth payload", 16}},
    {0xa2, {"xrceth payload", 16}},
    {0xa3, {"xrceth imm payload", 20}},
    {0xa4, {"xrceth payload", 16}},
    {0xa5, {"xrceth imm payload", 20}},
    {0xa6, {"xrceth reth payload", 32}},
    {0xa7, {"xrceth payload", 16}},
    {0xa8, {"xrceth payload", 16}},
    {0xa9, {"xrceth imm payload", 20}},
    {0xaa, {"xrceth reth payload", 32}},
    {0xab, {"xrceth reth imm payload", 36}},
    {0xac, {"xrceth reth", 32}},
    {0xad, {"aeth payload", 16}},
    {0xae, {"payload", 12}},
    {0xaf, {"aeth payload", 16}},
    {0xb0, {"aeth payload", 16}},
    {0xb1, {"aeth", 16}},
    {0xb2, {"aeth atomic_ack", 24}},
    {0xb3, {"xrceth atomic", 44}},
    {0xb4, {"xrceth atomic", 44}},
    {0xb6, {"xrceth ieth payload", 20}},
    {0xb7, {"xrceth ieth payload", 20}},
};

std::string describe(const OpcodeTraits& traits) {
  std::string text;
  const auto add = [&text](bool present, const char* name) {
    if (!present) return;
    if (!text.empty()) text += ' ';
    text += name;
  };
  add(traits.xrceth, "xrceth");
  add(traits.deth, "deth");
  add(traits.feth, "feth");
  add(traits.reth, "reth");
  add(traits.atomic_eth, "atomic");
  add(traits.aeth, "aeth");
  add(traits.atomic_ack_eth, "atomic_ack");
  add(traits.imm, "imm");
  add(traits.ieth, "ieth");
  add(traits.payload, "payload");
  return text;
}

TEST_CASE("Every opcode byte has the traits that the specification gives it") {
  size_t known = 0;
  for (unsigned value = 0; value < 256; ++value) {
    const auto opcode = static_cast<uint8_t>(value);
    CAPTURE(value);
    const OpcodeTraits& traits = traits_of(opcode);
    const auto row = kSpecification.find(opcode);
    CHECK(traits.known == (row != kSpecification.end()));
    const Row expected = row == kSpecification.end() ? Row{} : row->second;
    CHECK(describe(traits) == expected.headers);
    CHECK(traits.header_bytes == expected.bytes);
    CHECK(transport_header_bytes(opcode) == expected.bytes);
    known += traits.known;
  }
  CHECK(known == kSpecification.size());
}

// "F" FIRST, "M" MIDDLE, "L" LAST, "O" ONLY.
TEST_CASE("Every operation has its place in a message") {
  const std::map<Operation, std::pair<MessageKind, char>> specification = {
      {Operation::send_first, {MessageKind::send, 'F'}},
      {Operation::send_middle, {MessageKind::send, 'M'}},
      {Operation::send_last, {MessageKind::send, 'L'}},
      {Operation::send_last_imm, {MessageKind::send, 'L'}},
      {Operation::send_only, {MessageKind::send, 'O'}},
      {Operation::send_only_imm, {MessageKind::send, 'O'}},
      {Operation::write_first, {MessageKind::write, 'F'}},
      {Operation::write_middle, {MessageKind::write, 'M'}},
      {Operation::write_last, {MessageKind::write, 'L'}},
      {Operation::write_last_imm, {MessageKind::write, 'L'}},
      {Operation::write_only, {MessageKind::write, 'O'}},
      {Operation::write_only_imm, {MessageKind::write, 'O'}},
      {Operation::read_request, {MessageKind::read, 'O'}},
      {Operation::read_response_first, {MessageKind::response, 'F'}},
      {Operation::read_response_middle, {MessageKind::response, 'M'}},
      {Operation::read_response_last, {MessageKind::response, 'L'}},
      {Operation::read_response_only, {MessageKind::response, 'O'}},
      {Operation::acknowledge, {MessageKind::response, 'O'}},
      {Operation::atomic_acknowledge, {MessageKind::response, 'O'}},
      {Operation::compare_swap, {MessageKind::atomic, 'O'}},
      {Operation::fetch_add, {MessageKind::atomic, 'O'}},
      {Operation::send_last_invalidate, {MessageKind::send, 'L'}},
      {Operation::send_only_invalidate, {MessageKind::send, 'O'}},
      {Operation::flush, {MessageKind::flush, 'O'}},
      {Operation::atomic_write, {MessageKind::atomic_write, 'O'}},
  };
  for (const auto& [operation, place] : specification) {
    const OpcodeTraits& traits = traits_of(bth_opcode(Transport::rc, operation));
    CAPTURE(static_cast<int>(operation));
    CHECK(traits.kind == place.first);
    CHECK(traits.starts == (place.second == 'F' || place.second == 'O'));
    CHECK(traits.ends == (place.second == 'L' || place.second == 'O'));
  }
  CHECK(traits_of(kCnpOpcode).kind == MessageKind::none);
}

TEST_CASE("An opcode is its transport and its operation") {
  CHECK(bth_opcode(Transport::rc, Operation::send_first) == 0x00);
  CHECK(bth_opcode(Transport::uc, Operation::write_only_imm) == 0x2b);
  CHECK(bth_opcode(Transport::ud, Operation::send_only_imm) == 0x65);
  CHECK(bth_opcode(Transport::xrc, Operation::send_only_invalidate) == 0xb7);
}

}  // namespace
}  // namespace rocemu::wire
