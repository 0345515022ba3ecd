// Work requests and completions as the transport sees them: copies, already out of a program's
// reach. Statuses and completion opcodes are those of verbs, and cross the ABI unchanged.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/verbs/numbers.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

// Protection domain, as the device numbers them, from 1 on.
using PdHandle = uint32_t;

struct Sge {
  uint64_t address = 0;
  uint32_t length_bytes = 0;
  wire::LKey lkey{};
};

// A scatter/gather list. Up to four elements are kept in place, longer ones on the heap.
class SgeList {
 public:
  void assign(std::span<const Sge> sges) {
    size_ = static_cast<uint32_t>(sges.size());
    if (size_ > kInPlace && size_ > heap_capacity_) {
      heap_ = std::make_unique<Sge[]>(size_);
      heap_capacity_ = size_;
    }
    std::copy(sges.begin(), sges.end(), size_ > kInPlace ? heap_.get() : in_place_);
  }
  std::span<const Sge> view() const { return {size_ > kInPlace ? heap_.get() : in_place_, size_}; }

 private:
  static constexpr uint32_t kInPlace = 4;
  Sge in_place_[kInPlace];
  std::unique_ptr<Sge[]> heap_;
  uint32_t size_ = 0;
  uint32_t heap_capacity_ = 0;
};

// The size of the operand of an atomic operation.
inline constexpr uint32_t kAtomicBytes = 8;

enum class WorkOpcode : uint8_t {
  send,
  send_imm,
  write,
  write_imm,
  read,
  compare_swap,
  fetch_add,
  send_invalidate,
  bind_window,
  local_invalidate,
  atomic_write,
  flush,
  tso,
};

// The request's number in verbs (enum ibv_wr_opcode).
constexpr uint8_t wr_opcode_of(WorkOpcode op) {
  namespace number = verbs::wr_opcode;
  switch (op) {
    case WorkOpcode::send:
      return number::kSend;
    case WorkOpcode::send_imm:
      return number::kSendWithImm;
    case WorkOpcode::write:
      return number::kRdmaWrite;
    case WorkOpcode::write_imm:
      return number::kRdmaWriteWithImm;
    case WorkOpcode::read:
      return number::kRdmaRead;
    case WorkOpcode::compare_swap:
      return number::kAtomicCmpAndSwp;
    case WorkOpcode::fetch_add:
      return number::kAtomicFetchAndAdd;
    case WorkOpcode::send_invalidate:
      return number::kSendWithInv;
    case WorkOpcode::bind_window:
      return number::kBindMw;
    case WorkOpcode::local_invalidate:
      return number::kLocalInv;
    case WorkOpcode::atomic_write:
      return number::kAtomicWrite;
    case WorkOpcode::flush:
      return number::kFlush;
    case WorkOpcode::tso:
      return number::kTso;
  }
  return number::kSend;
}

constexpr bool is_send(WorkOpcode op) {
  return op == WorkOpcode::send || op == WorkOpcode::send_imm || op == WorkOpcode::send_invalidate;
}

// It takes a receive at the peer.
constexpr bool takes_receive(WorkOpcode op) { return is_send(op) || op == WorkOpcode::write_imm; }

// Requests that concern this side alone: they send nothing.
constexpr bool is_local(WorkOpcode op) {
  return op == WorkOpcode::bind_window || op == WorkOpcode::local_invalidate;
}
constexpr bool is_write(WorkOpcode op) {
  return op == WorkOpcode::write || op == WorkOpcode::write_imm;
}
constexpr bool is_atomic(WorkOpcode op) {
  return op == WorkOpcode::compare_swap || op == WorkOpcode::fetch_add;
}
// Requests whose answer is data for this side.
constexpr bool brings_data(WorkOpcode op) { return op == WorkOpcode::read || is_atomic(op); }
// Requests that are answered each by itself: they count against max_rd_atomic; a fence waits for
// them. An ATOMIC WRITE and a FLUSH are answered by a READ response without data.
constexpr bool is_read_or_atomic(WorkOpcode op) {
  return brings_data(op) || op == WorkOpcode::atomic_write || op == WorkOpcode::flush;
}

using verbs::WcOpcode;
using verbs::WcStatus;

// WindowBinding says what a memory window is to grant: `length_bytes` from `address` on of the
// region that `region` names, or nothing when the length is 0.
struct WindowBinding {
  wire::RKey window{};  // the key it has from now on
  wire::LKey region{};
  uint64_t address = 0;
  uint64_t length_bytes = 0;
  uint32_t access = 0;  // verbs::access
};

// What the frames of a request for TCP segmentation are made of: each has `headers`, made its own
// (wire/tcp_segment.h), and `payload_bytes` of the message, the last one the rest of it.
struct Segmentation {
  // In queue memory, valid as long as SendWork::inline_payload. A program may scribble on them:
  // they are looked at again in each frame.
  std::span<const std::byte> headers;
  uint32_t payload_bytes = 0;  // the maximum segment size
};

// A program that is traced says in each request when it posted it, in units of kPostStampNs that
// wrap after 275 s.
inline constexpr uint32_t kPostStampNs = 64;

// The time that `stamp` stands for: the last one that fits, `now` at the latest, of the clock that
// both read.
constexpr uint64_t posted_ns(uint32_t stamp, uint64_t now_ns) {
  const uint32_t ago = static_cast<uint32_t>(now_ns / kPostStampNs) - stamp;
  const bool is_ahead = ago > UINT32_MAX / 2;  // by a tick of its own, or a lie
  return is_ahead ? now_ns : now_ns - uint64_t{ago} * kPostStampNs;
}

// One send work request.
struct SendWork {
  uint64_t wr_id = 0;
  WorkOpcode opcode = WorkOpcode::send;
  bool signaled = false;
  bool solicited = false;
  bool fence = false;
  // Not `success`: the request is malformed (unknown opcode, too many SGEs, too long) and completes
  // with this status when its turn comes, without a packet.
  WcStatus fault = WcStatus::success;
  wire::Feth feth;         // FLUSH
  uint32_t immediate = 0;  // network order
  uint64_t remote_address = 0;
  wire::RKey rkey{};  // the key of the peer's memory, or the one that is to be invalidated
  uint32_t address_handle = 0;  // UD
  wire::Qpn remote_qpn{};       // UD
  uint32_t remote_qkey = 0;     // UD
  wire::Qpn remote_srq{};       // XRC
  uint32_t flush_bytes = 0;     // FLUSH of a range: how many, from remote_address on
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  uint32_t length_bytes = 0;  // the whole message's
  // Payload that lies in queue memory; null when the payload is in `sges`. Valid until the request
  // has been released (SendQueue::release). A program may scribble on it: only payload comes of it.
  const std::byte* inline_payload = nullptr;
  SgeList sges;
  // When the program says that it posted it; see posted_ns(). 0: it does not say.
  uint32_t post_stamp = 0;
  PdHandle pd = 0;  // of what `sges` name; 0: the QP's
  // A copy, in queue memory, of the bytes that the one element of `sges` names, for which the
  // program that posted it vouches; null when there is none.
  const std::byte* inline_wqe_data = nullptr;
  // For bind_window alone.
  WindowBinding binding;
  // For tso alone.
  Segmentation segmentation;
};

// One receive work request.
struct ReceiveWork {
  uint64_t wr_id = 0;
  WcStatus fault = WcStatus::success;
  uint32_t post_stamp = 0;    // as in SendWork
  uint32_t length_bytes = 0;  // the sum over all SGEs
  SgeList sges;
};

// A received payload that travels in its completion ("inline in CQE", "scatter to CQE" in mlx5),
// and where in the program it belongs. The program has it when it has taken the completion, and not
// before; small messages then need no move of their own.
struct InlineCqeData {
  static constexpr uint32_t kMaxBytes = 16;

  uint64_t address = 0;
  uint32_t length_bytes = 0;  // 0: the completion has none
  std::array<std::byte, kMaxBytes> bytes{};
};

struct Completion {
  uint64_t wr_id = 0;
  wire::Qpn qpn{};
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::send;
  bool has_immediate = false;
  bool has_invalidated = false;  // the peer's SEND invalidated the key in `immediate`
  bool solicited = false;        // wakes a CQ that was armed for solicited completions only
  uint8_t tag_flags = 0;         // tag matching: verbs::wc_flag
  uint32_t immediate = 0;        // network order; or a key
  uint32_t byte_length = 0;
  bool has_flow_tag = false;  // raw packets
  uint32_t flow_tag = 0;
  bool has_grh = false;         // UD: 40 bytes of it stand before the data
  wire::Qpn source_qp{};        // UD
  uint8_t service_level = 0;    // UD: which kind of IP header the GRH is (ud_qp.cc)
  InlineCqeData inline_data{};  // a receive's payload

  // The header of the message that was matched. It takes the place of what a receive has inline,
  // which a tagged one has not, and of a datagram's source.
  void set_tag(uint64_t tag, uint32_t context) {
    inline_data.address = tag;
    source_qp = wire::Qpn{context};
  }
  uint64_t tag() const { return inline_data.address; }
};

}  // namespace rocemu::transport
