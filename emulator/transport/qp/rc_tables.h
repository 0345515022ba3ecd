// The requester's tables of reliable connections: which NAK means which status, and how long the
// coded times are (IBTA vol 1, 9.7.5.2.8 tables 45 to 48 and 9.7.6.1.3; ibv_modify_qp(3)). The
// responder's table is responder/refusals.h.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "emulator/transport/interface/work.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/opcode.h"

namespace rocemu::transport {

// The requester's status for a NAK that ends the connection. Unknown codes count as the remote
// operation error, as Linux takes 0x64.
constexpr WcStatus status_of_nak(uint8_t syndrome) {
  switch (syndrome) {
    case wire::syndrome::kNakInvalidRequest:
      return WcStatus::remote_invalid_request_error;
    case wire::syndrome::kNakRemoteAccess:
      return WcStatus::remote_access_error;
    default:
      return WcStatus::remote_operation_error;
  }
}

// The ACK timeout by its code; kNever for 0.
constexpr TimeNs ack_timeout_ns(uint8_t code) {
  return code == 0 ? kNever : TimeNs{4096} << (code & 31);
}

// The RNR NAK timer by its code.
constexpr TimeNs rnr_timer_ns(uint8_t code) {
  constexpr std::array<uint32_t, 32> kHundredthsOfMs = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return TimeNs{kHundredthsOfMs[code & 31]} * 10'000;
}

constexpr WcOpcode completion_opcode(WorkOpcode op) {
  switch (op) {
    case WorkOpcode::send:
    case WorkOpcode::send_imm:
    case WorkOpcode::send_invalidate:
      return WcOpcode::send;
    case WorkOpcode::write:
    case WorkOpcode::write_imm:
      return WcOpcode::rdma_write;
    case WorkOpcode::read:
      return WcOpcode::rdma_read;
    case WorkOpcode::compare_swap:
      return WcOpcode::compare_swap;
    case WorkOpcode::fetch_add:
      return WcOpcode::fetch_add;
    case WorkOpcode::bind_window:
      return WcOpcode::bind_window;
    case WorkOpcode::local_invalidate:
      return WcOpcode::local_invalidate;
    case WorkOpcode::atomic_write:
      return WcOpcode::atomic_write;
    case WorkOpcode::flush:
      return WcOpcode::flush;
    case WorkOpcode::tso:
      return WcOpcode::tso;
  }
  return WcOpcode::send;
}

// The longest message (IBTA vol 1, 9.7.2).
inline constexpr uint32_t kMaxMessageBytes = 1u << 31;

// The number of packets of a message: at least one.
constexpr uint32_t packets_of(uint32_t length_bytes, uint32_t mtu_bytes) {
  return length_bytes == 0 ? 1 : (length_bytes - 1) / mtu_bytes + 1;
}

}  // namespace rocemu::transport
