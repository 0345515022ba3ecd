#include "emulator/trace/show/vocabulary.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/verbs/numbers.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/opcode.h"

namespace rocemu::trace {

namespace {

using wire::Operation;
using wire::Transport;

constexpr std::pair<uint8_t, std::string_view> kOperations[] = {
    {static_cast<uint8_t>(Operation::send_first), "SEND_FIRST"},
    {static_cast<uint8_t>(Operation::send_middle), "SEND_MIDDLE"},
    {static_cast<uint8_t>(Operation::send_last), "SEND_LAST"},
    {static_cast<uint8_t>(Operation::send_last_imm), "SEND_LAST_IMM"},
    {static_cast<uint8_t>(Operation::send_only), "SEND_ONLY"},
    {static_cast<uint8_t>(Operation::send_only_imm), "SEND_ONLY_IMM"},
    {static_cast<uint8_t>(Operation::write_first), "WRITE_FIRST"},
    {static_cast<uint8_t>(Operation::write_middle), "WRITE_MIDDLE"},
    {static_cast<uint8_t>(Operation::write_last), "WRITE_LAST"},
    {static_cast<uint8_t>(Operation::write_last_imm), "WRITE_LAST_IMM"},
    {static_cast<uint8_t>(Operation::write_only), "WRITE_ONLY"},
    {static_cast<uint8_t>(Operation::write_only_imm), "WRITE_ONLY_IMM"},
    {static_cast<uint8_t>(Operation::read_request), "READ_REQUEST"},
    {static_cast<uint8_t>(Operation::read_response_first), "READ_RESPONSE_FIRST"},
    {static_cast<uint8_t>(Operation::read_response_middle), "READ_RESPONSE_MIDDLE"},
    {static_cast<uint8_t>(Operation::read_response_last), "READ_RESPONSE_LAST"},
    {static_cast<uint8_t>(Operation::read_response_only), "READ_RESPONSE_ONLY"},
    {static_cast<uint8_t>(Operation::acknowledge), "ACKNOWLEDGE"},
    {static_cast<uint8_t>(Operation::atomic_acknowledge), "ATOMIC_ACKNOWLEDGE"},
    {static_cast<uint8_t>(Operation::compare_swap), "COMPARE_SWAP"},
    {static_cast<uint8_t>(Operation::fetch_add), "FETCH_ADD"},
    {static_cast<uint8_t>(Operation::send_last_invalidate), "SEND_LAST_INVALIDATE"},
    {static_cast<uint8_t>(Operation::send_only_invalidate), "SEND_ONLY_INVALIDATE"},
    {static_cast<uint8_t>(Operation::flush), "FLUSH"},
    {static_cast<uint8_t>(Operation::atomic_write), "ATOMIC_WRITE"},
};

constexpr std::pair<uint8_t, std::string_view> kRequests[] = {
    {verbs::wr_opcode::kRdmaWrite, "RDMA WRITE"},
    {verbs::wr_opcode::kRdmaWriteWithImm, "RDMA WRITE with immediate"},
    {verbs::wr_opcode::kSend, "SEND"},
    {verbs::wr_opcode::kSendWithImm, "SEND with immediate"},
    {verbs::wr_opcode::kRdmaRead, "RDMA READ"},
    {verbs::wr_opcode::kAtomicCmpAndSwp, "compare and swap"},
    {verbs::wr_opcode::kAtomicFetchAndAdd, "fetch and add"},
    {verbs::wr_opcode::kLocalInv, "local invalidate"},
    {verbs::wr_opcode::kBindMw, "bind window"},
    {verbs::wr_opcode::kSendWithInv, "SEND with invalidate"},
    {verbs::wr_opcode::kTso, "TSO"},
    {verbs::wr_opcode::kFlush, "FLUSH"},
    {verbs::wr_opcode::kAtomicWrite, "ATOMIC WRITE"},
};

constexpr std::pair<uint8_t, std::string_view> kCompletions[] = {
    {0, "send"},        {1, "RDMA WRITE"},    {2, "RDMA READ"},     {3, "compare swap"},
    {4, "fetch add"},   {5, "bind window"},   {6, "local invalid"}, {7, "TSO"},
    {8, "FLUSH"},       {9, "ATOMIC WRITE"},  {128, "receive"},     {129, "receive with immediate"},
    {130, "tag added"}, {131, "tag deleted"}, {132, "tags synced"}, {133, "tagged receive"},
    {134, "no tag"},
};

constexpr std::pair<uint8_t, std::string_view> kStatuses[] = {
    {0, "success"},
    {1, "local length error"},
    {2, "local QP operation error"},
    {4, "local protection error"},
    {5, "flushed"},
    {6, "window bind error"},
    {7, "bad response"},
    {8, "local access error"},
    {9, "remote invalid request"},
    {10, "remote access error"},
    {11, "remote operation error"},
    {12, "retries exceeded"},
    {13, "RNR retries exceeded"},
    {21, "general error"},
    {22, "tag matching error"},
    {23, "tag rendezvous incomplete"},
};

constexpr std::pair<uint8_t, std::string_view> kStates[] = {
    {0, "RESET"}, {1, "INIT"}, {2, "RTR"}, {3, "RTS"}, {4, "SQD"}, {5, "SQE"}, {6, "ERROR"},
};

constexpr std::pair<uint8_t, std::string_view> kTypes[] = {
    {verbs::qp_type::kRc, "RC"},
    {verbs::qp_type::kUc, "UC"},
    {verbs::qp_type::kUd, "UD"},
    {verbs::qp_type::kRawPacket, "raw packet"},
    {verbs::qp_type::kXrcSend, "XRC send"},
    {verbs::qp_type::kXrcReceive, "XRC receive"},
};

// Low bytes of attribute ids (IBTA vol 1, table 105).
constexpr std::pair<uint8_t, std::string_view> kCmMessages[] = {
    {0x10, "REQ"},      {0x11, "MRA"},  {0x12, "REJ"},  {0x13, "REP"},
    {0x14, "RTU"},      {0x15, "DREQ"}, {0x16, "DREP"}, {0x17, "SIDR REQ"},
    {0x18, "SIDR REP"}, {0x19, "LAP"},  {0x1a, "APR"},
};

constexpr std::pair<uint8_t, std::string_view> kNaks[] = {
    {wire::syndrome::kNakSequence, "PSN sequence error"},
    {wire::syndrome::kNakInvalidRequest, "invalid request"},
    {wire::syndrome::kNakRemoteAccess, "remote access error"},
    {wire::syndrome::kNakRemoteOperation, "remote operational error"},
    {wire::syndrome::kNakInvalidRdRequest, "invalid RD request"},
};

// The five bits of an RNR NAK's timer, in units of 10 us (IBTA vol 1, table 46).
constexpr std::array<uint32_t, 32> kRnrTensOfUs = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

template <size_t n>
std::string look_up(const std::pair<uint8_t, std::string_view> (&rows)[n], uint8_t number,
                    const char* otherwise) {
  const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                 [&](const auto& r) { return r.first == number; });
  if (row != std::end(rows)) return std::string(row->second);
  return std::string(otherwise) + " " + std::to_string(number);
}

}  // namespace

std::string packet_opcode_text(uint8_t opcode) {
  if (opcode == wire::kCnpOpcode) return "CNP";
  const auto transport = static_cast<Transport>(opcode & 0xe0);
  const char* const before = transport == Transport::rc    ? ""
                             : transport == Transport::uc  ? "UC "
                             : transport == Transport::ud  ? "UD "
                             : transport == Transport::xrc ? "XRC "
                                                           : nullptr;
  const auto* row = std::find_if(std::begin(kOperations), std::end(kOperations),
                                 [&](const auto& r) { return r.first == (opcode & 0x1f); });
  if (before == nullptr || row == std::end(kOperations)) return "opcode " + hexadecimal(opcode);
  return before + std::string(row->second);
}

std::string request_opcode_text(uint8_t opcode) {
  return look_up(kRequests, opcode, "request opcode");
}
std::string completion_opcode_text(uint8_t opcode) {
  return look_up(kCompletions, opcode, "completion opcode");
}
std::string status_text(uint8_t status) { return look_up(kStatuses, status, "status"); }
std::string state_text(uint8_t state) { return look_up(kStates, state, "state"); }
std::string qp_type_text(uint8_t type) { return look_up(kTypes, type, "QP type"); }

std::string cm_message_text(uint8_t opcode) { return look_up(kCmMessages, opcode, "CM message"); }

bool refuses(uint8_t syndrome) { return !wire::syndrome::is_ack(syndrome); }

std::string syndrome_text(uint8_t syndrome) {
  if (wire::syndrome::is_ack(syndrome)) return "ACK";
  if (wire::syndrome::is_rnr(syndrome))
    return "RNR NAK, " + duration_text(uint64_t{kRnrTensOfUs[syndrome & 0x1f]} * 10'000);
  const auto* row = std::find_if(std::begin(kNaks), std::end(kNaks),
                                 [&](const auto& r) { return r.first == syndrome; });
  if (row == std::end(kNaks)) return "NAK " + hexadecimal(syndrome);
  return "NAK: " + std::string(row->second);
}

std::string duration_text(uint64_t ns) {
  constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  for (const auto& [unit_ns, unit] : kUnits)
    if (ns >= unit_ns) {
      std::array<char, 40> text;
      std::snprintf(text.data(), text.size(), "%.4g %s",
                    static_cast<double>(ns) / static_cast<double>(unit_ns), unit);
      // %g would write 18446744073 s with an exponent.
      if (ns / unit_ns >= 10'000)
        std::snprintf(text.data(), text.size(), "%llu %s",
                      static_cast<unsigned long long>(ns / unit_ns), unit);
      return text.data();
    }
  return std::to_string(ns) + " ns";
}

std::string flags_text(uint16_t flags) {
  constexpr std::pair<uint16_t, const char*> kFlags[] = {
      {flag::kReceiveQueue, "receive queue"},
      {flag::kShared, "SRQ"},
      {flag::kExisted, "older than the trace"},
      {flag::kRetransmission, "sent again"},
      {flag::kAckRequest, "wants an ACK"},
      {flag::kSolicited, "solicited"},
      {flag::kCongestion, "CE"},
      {flag::kSignaled, "signaled"},
      {flag::kFence, "fence"},
      {flag::kResponse, "response"},
      {flag::kHasAeth, "AETH"},
      {flag::kHasReth, "RETH"},
      {flag::kTimeIsNics, "the NIC's time"},
      {flag::kArriving, "on its way here"},
      {flag::kPosted, "posted before"},
  };
  std::string text;
  for (const auto& [bit, name] : kFlags)
    if ((flags & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  if ((flags & ~flag::kKnown) != 0)
    text += (text.empty() ? "" : ", ") + hexadecimal(flags & ~flag::kKnown);
  return text;
}

std::string hexadecimal(uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string program_text(const Names& names, uint16_t program) {
  if (program == kNoProgram) return {};
  std::string text = names.text(Table::program, program);
  const Name* const name = names.find(Table::program, program);
  if (name != nullptr && name->detail != 0) text += " (" + std::to_string(name->detail) + ")";
  return text;
}

}  // namespace rocemu::trace
