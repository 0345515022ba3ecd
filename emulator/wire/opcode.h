// BTH opcodes, what each of them carries and where it stands in its message (IBTA vol 1, table 35
// and 9.2.1; XRC: annex A14; CNP: annex A17.9; FLUSH and ATOMIC WRITE: annex A19). The headers
// follow the BTH in this order: XRCETH, DETH, FETH, RETH, AtomicETH, AETH, AtomicAckETH, ImmDt,
// IETH. Reliable datagrams (RD) do not exist in RoCE: their opcodes are unknown.
#pragma once

#include <array>
#include <cstdint>

namespace rocemu::wire {

// The upper three bits of a BTH opcode.
enum class Transport : uint8_t {
  rc = 0x00,
  uc = 0x20,
  rd = 0x40,
  ud = 0x60,
  cnp = 0x80,
  xrc = 0xa0,
};

// The lower five bits of a BTH opcode.
enum class Operation : uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_imm = 0x03,
  send_only = 0x04,
  send_only_imm = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_imm = 0x09,
  write_only = 0x0a,
  write_only_imm = 0x0b,
  read_request = 0x0c,
  read_response_first = 0x0d,
  read_response_middle = 0x0e,
  read_response_last = 0x0f,
  read_response_only = 0x10,
  acknowledge = 0x11,
  atomic_acknowledge = 0x12,
  compare_swap = 0x13,
  fetch_add = 0x14,
  send_last_invalidate = 0x16,
  send_only_invalidate = 0x17,
  // Annex A19; as Linux, over RC alone.
  flush = 0x1c,
  atomic_write = 0x1d,  // of 64 bits
};

inline constexpr uint8_t kCnpOpcode = 0x81;

constexpr uint8_t bth_opcode(Transport transport, Operation operation) {
  return static_cast<uint8_t>(transport) | static_cast<uint8_t>(operation);
}

// The kind of message that a packet is part of. ACKs, NAKs and all other answers are responses.
enum class MessageKind : uint8_t { none, send, write, read, atomic, atomic_write, flush, response };

// One row of the table of opcodes: which headers follow the BTH, what the payload may be, and where
// in its message the packet stands. A SEND that has an IETH invalidates a key.
struct OpcodeTraits {
  bool known = false;
  bool feth = false;
  bool reth = false;
  bool aeth = false;
  bool atomic_eth = false;
  bool atomic_ack_eth = false;
  bool deth = false;
  bool xrceth = false;
  bool imm = false;
  bool ieth = false;
  bool payload = false;  // false: the payload has to be empty; true for CNP's reserved bytes
  bool starts = false;   // the message: FIRST and ONLY
  bool ends = false;     // the message: LAST and ONLY
  MessageKind kind = MessageKind::none;
  uint8_t header_bytes = 0;  // the BTH and all of these
};

extern const std::array<OpcodeTraits, 256> kOpcodeTraits;

// Traits of a whole BTH opcode byte; `known` is false for reserved ones.
inline const OpcodeTraits& traits_of(uint8_t opcode) { return kOpcodeTraits[opcode]; }

}  // namespace rocemu::wire
