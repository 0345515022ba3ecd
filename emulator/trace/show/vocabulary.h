// Words for the numbers that records have of verbs and of the wire. A number that is none of them
// gets a text all the same, with the number in it: files are hostile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/trace/format/names.h"
#include "emulator/trace/format/record.h"

namespace rocemu::trace {

// "SEND_FIRST", "UD SEND_ONLY", "CNP", "opcode 0x3f": of a BTH.
std::string packet_opcode_text(uint8_t opcode);
// "RDMA READ", "request opcode 77": a verbs::wr_opcode.
std::string request_opcode_text(uint8_t opcode);
// "receive", "completion opcode 99": a verbs::WcOpcode.
std::string completion_opcode_text(uint8_t opcode);
// "remote access error", "status 99": a verbs::WcStatus.
std::string status_text(uint8_t status);
// "ready to send", "state 99": a verbs::QpState.
std::string state_text(uint8_t state);
// "RC", "QP type 99": a verbs::qp_type.
std::string qp_type_text(uint8_t type);
// "REQ", "CM message 0x7": of a record of the connection manager.
std::string cm_message_text(uint8_t opcode);
// "ACK", "RNR NAK, 0.64 ms", "NAK: remote access error": of an AETH.
std::string syndrome_text(uint8_t syndrome);
// "12.345 us", "4.2 s": four digits at most.
std::string duration_text(uint64_t ns);
// "wants an ACK, response": of a record; empty for 0.
std::string flags_text(uint16_t flags);
// "0x11": as other tools write a QPN.
std::string hexadecimal(uint64_t value);

// "ib_write_bw (4711)"; empty for kNoProgram.
std::string program_text(const Names& names, uint16_t program);

// True when the AETH refuses: it is a NAK or an RNR NAK.
bool refuses(uint8_t syndrome);

}  // namespace rocemu::trace
