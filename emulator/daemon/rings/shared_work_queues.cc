#include "emulator/daemon/rings/shared_work_queues.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/verbs/numbers.h"
#include "emulator/daemon/rings/shared_words.h"

namespace rocemu::daemon {
namespace {

using transport::Sge;
using transport::WcStatus;
using transport::WorkOpcode;

rocemu_queue_header& header_at(std::byte* memory) {
  return *reinterpret_cast<rocemu_queue_header*>(memory);
}

std::optional<WorkOpcode> work_opcode(uint8_t wr_opcode) {
  namespace number = verbs::wr_opcode;
  switch (wr_opcode) {
    case number::kRdmaWrite:
      return WorkOpcode::write;
    case number::kRdmaWriteWithImm:
      return WorkOpcode::write_imm;
    case number::kSend:
      return WorkOpcode::send;
    case number::kSendWithImm:
      return WorkOpcode::send_imm;
    case number::kRdmaRead:
      return WorkOpcode::read;
    case number::kAtomicCmpAndSwp:
      return WorkOpcode::compare_swap;
    case number::kAtomicFetchAndAdd:
      return WorkOpcode::fetch_add;
    case number::kLocalInv:
      return WorkOpcode::local_invalidate;
    case number::kBindMw:
      return WorkOpcode::bind_window;
    case number::kSendWithInv:
      return WorkOpcode::send_invalidate;
    case number::kTso:
      return WorkOpcode::tso;
    case number::kAtomicWrite:
      return WorkOpcode::atomic_write;
    case number::kFlush:
      return WorkOpcode::flush;
    default:
      return std::nullopt;
  }
}

transport::WindowBinding binding_of(const rocemu_send_wqe& wqe) {
  transport::WindowBinding binding;
  binding.window = wire::RKey{wqe.rkey};
  binding.region = wire::LKey{wqe.imm_or_rkey};
  binding.address = wqe.remote_address;
  binding.length_bytes = wqe.compare_add;
  // Bits that no access flag has make a binding that is refused.
  binding.access = static_cast<uint32_t>(wqe.swap) | (wqe.swap >> 32 != 0 ? UINT32_MAX : 0);
  return binding;
}

// Copies a scatter/gather list out, without its empty elements (they name no memory, and their keys
// are not looked at: IBTA vol 1, 10.7.3.2). Returns the bytes of all elements.
uint64_t copy_sges(const std::byte* shared, uint32_t count, std::vector<Sge>& sges) {
  uint64_t total = 0;
  sges.clear();
  for (uint32_t i = 0; i < count; ++i) {
    rocemu_sge sge;
    copy_out(sge, shared + i * sizeof(rocemu_sge));
    if (sge.length_bytes == 0) continue;
    sges.push_back({sge.address, sge.length_bytes, wire::LKey{sge.lkey}});
    total += sge.length_bytes;
  }
  return total;
}

}  // namespace

RingCursor::Next RingCursor::next() noexcept {
  if (broken_ || entries_ == 0) return Next::none;
  if (popped_ == seen_producer_) {
    const uint32_t producer = load_seq_cst(*producer_);
    if (producer == popped_) return Next::none;
    const uint32_t in_flight = popped_ - released_;
    if (producer - popped_ > entries_ - in_flight) {
      broken_ = true;
      return Next::nonsense;
    }
    seen_producer_ = producer;
  }
  return Next::entry;
}

uint32_t RingCursor::waiting() const noexcept {
  return std::min(load_acquire(*producer_) - popped_, entries_);
}

void RingCursor::skip_all() noexcept {
  popped_ = released_ = seen_producer_ = load_acquire(*producer_);
  broken_ = false;
}

SharedSendQueue::SharedSendQueue(std::byte* memory, const QpLayout& layout,
                                 uint32_t max_message_bytes)
    : header_(header_at(memory)),
      ring_(memory + layout.send.offset_bytes),
      layout_(layout.send),
      max_inline_data_(layout.max_inline_data),
      max_tso_header_(layout.max_tso_header),
      max_message_bytes_(max_message_bytes),
      cursor_(header_.sq_producer, layout.send.entries) {
  sges_.reserve(layout.send.max_sge);
}

bool SharedSendQueue::pop(transport::SendWork& work) noexcept {
  const RingCursor::Next next = cursor_.next();
  if (next == RingCursor::Next::none) return false;
  rocemu_send_wqe wqe{};
  const std::byte* slot = ring_ + size_t{cursor_.slot()} * layout_.stride_bytes;
  if (next == RingCursor::Next::entry) copy_out(wqe, slot);
  cursor_.advance();
  decode(wqe, slot, work);
  if (next == RingCursor::Next::nonsense) work.fault = WcStatus::local_qp_operation_error;
  return true;
}

void SharedSendQueue::decode(const rocemu_send_wqe& wqe, const std::byte* slot,
                             transport::SendWork& work) noexcept {
  const std::optional<WorkOpcode> opcode = work_opcode(wqe.opcode);
  work.wr_id = wqe.wr_id;
  work.opcode = opcode.value_or(WorkOpcode::send);
  work.signaled = (wqe.flags & ROCEMU_SEND_SIGNALED) != 0;
  work.solicited = (wqe.flags & ROCEMU_SEND_SOLICITED) != 0;
  work.fence = (wqe.flags & ROCEMU_SEND_FENCE) != 0;
  work.fault = WcStatus::success;
  work.immediate = wqe.imm_or_rkey;
  work.remote_address = wqe.remote_address;
  const bool invalidates =
      work.opcode == WorkOpcode::send_invalidate || work.opcode == WorkOpcode::local_invalidate;
  work.rkey = wire::RKey{invalidates ? wqe.imm_or_rkey : wqe.rkey};
  work.address_handle = wqe.ah;
  work.remote_qpn = work.remote_srq = wire::Qpn{wqe.remote_qpn & wire::Psn::kMask};
  work.remote_qkey = wqe.remote_qkey;
  work.compare_add = wqe.compare_add;
  work.swap = wqe.swap;
  work.post_stamp = wqe.post_stamp;
  work.length_bytes = 0;
  work.inline_payload = work.inline_wqe_data = nullptr;
  work.sges.assign({});

  const bool is_inline = (wqe.flags & ROCEMU_SEND_INLINE) != 0;
  const bool is_local = transport::is_local(work.opcode);
  const bool is_atomic_write = work.opcode == WorkOpcode::atomic_write;
  const bool is_tso = work.opcode == WorkOpcode::tso;
  const bool is_flush = work.opcode == WorkOpcode::flush;
  const bool takes_inline =
      !is_local && !is_tso && !is_flush && !transport::brings_data(work.opcode);
  if (!opcode || (is_tso && (max_tso_header_ == 0 || wqe.inline_bytes > max_tso_header_)) ||
      (is_inline && !takes_inline) || wqe.num_sge > layout_.max_sge ||
      (is_inline &&
       wqe.inline_bytes > (is_atomic_write ? transport::kAtomicBytes : max_inline_data_))) {
    work.fault = WcStatus::local_qp_operation_error;
    return;
  }
  if (is_local) {
    if (work.opcode == WorkOpcode::bind_window) work.binding = binding_of(wqe);
    return;
  }
  if (is_flush) {
    work.feth = {.placement = static_cast<uint8_t>(wqe.swap & 0xf),
                 .selectivity = static_cast<uint8_t>(wqe.swap >> 8 & 3)};
    work.flush_bytes = static_cast<uint32_t>(wqe.compare_add);
    return;
  }
  const bool has_atomic_length = transport::is_atomic(work.opcode) || is_atomic_write;
  const std::byte* payload = slot + sizeof(rocemu_send_wqe);
  const uint64_t total = is_inline ? wqe.inline_bytes : copy_sges(payload, wqe.num_sge, sges_);
  if (total > max_message_bytes_ || (has_atomic_length && total != transport::kAtomicBytes)) {
    work.fault = WcStatus::local_length_error;
    return;
  }
  work.length_bytes = static_cast<uint32_t>(total);
  if (is_inline) {
    work.inline_payload = is_atomic_write ? slot + offsetof(rocemu_send_wqe, compare_add) : payload;
  } else {
    work.sges.assign(sges_);
    const bool has_data = (wqe.flags & ROCEMU_SEND_INLINE_WQE_DATA) != 0 && takes_inline &&
                          !is_atomic_write && sges_.size() == 1 &&
                          total <= ROCEMU_INLINE_WQE_DATA_MAX;
    if (has_data) work.inline_wqe_data = slot + offsetof(rocemu_send_wqe, compare_add);
  }
  if (!is_tso) return;
  work.rkey = {};
  work.segmentation = {{payload + layout_.max_sge * sizeof(rocemu_sge), wqe.inline_bytes},
                       wqe.rkey};
}

void SharedSendQueue::release(uint32_t count) noexcept {
  cursor_.release(count);
  store_release(header_.sq_consumer, cursor_.released());
}

void SharedSendQueue::reset() noexcept {
  cursor_.skip_all();
  store_release(header_.sq_consumer, cursor_.released());
}

SharedReceiveQueue::SharedReceiveQueue(std::byte* memory, const RingLayout& ring)
    : header_(header_at(memory)),
      ring_(memory + ring.offset_bytes),
      layout_(ring),
      cursor_(header_.rq_producer, ring.entries) {
  sges_.reserve(ring.max_sge);
}

bool SharedReceiveQueue::pop(transport::ReceiveWork& work) noexcept {
  const RingCursor::Next next = cursor_.next();
  if (next == RingCursor::Next::none) return false;
  rocemu_recv_wqe wqe{};
  const std::byte* slot = ring_ + size_t{cursor_.slot()} * layout_.stride_bytes;
  if (next == RingCursor::Next::entry) copy_out(wqe, slot);

  work.wr_id = wqe.wr_id;
  work.fault = WcStatus::success;
  work.post_stamp = wqe.post_stamp;
  work.length_bytes = 0;
  work.sges.assign({});
  if (next == RingCursor::Next::nonsense || wqe.num_sge > layout_.max_sge) {
    work.fault = WcStatus::local_qp_operation_error;
  } else {
    const uint64_t total = copy_sges(slot + sizeof(rocemu_recv_wqe), wqe.num_sge, sges_);
    if (total > UINT32_MAX) {
      work.fault = WcStatus::local_length_error;
    } else {
      work.length_bytes = static_cast<uint32_t>(total);
      work.sges.assign(sges_);
    }
  }

  cursor_.advance();
  cursor_.release(1);
  store_release(header_.rq_consumer, cursor_.released());
  return true;
}

void SharedReceiveQueue::reset() noexcept {
  cursor_.skip_all();
  store_release(header_.rq_consumer, cursor_.released());
}

bool SharedReceiveQueue::has_room_for(const SharedReceiveQueue& old) const noexcept {
  return old.waiting() <= layout_.entries && old.layout_.max_sge <= layout_.max_sge &&
         old.layout_.stride_bytes <= layout_.stride_bytes;
}

// Takes entries over up to index `end` here, but for those that QPs have taken of the old ring.
void SharedReceiveQueue::take(const SharedReceiveQueue& old, uint32_t end) noexcept {
  const uint32_t popped = old.cursor_.popped() - *taken_from_;
  for (taken_ = std::max(taken_, popped); taken_ < end; ++taken_)
    std::memcpy(ring_ + size_t{taken_ & (layout_.entries - 1)} * layout_.stride_bytes,
                old.ring_ + size_t{old.cursor_.slot(taken_ - popped)} * old.layout_.stride_bytes,
                old.layout_.stride_bytes);
}

// So many entries take some 100 us where requests are long, with the page faults of a new ring.
bool SharedReceiveQueue::prepare_to_take_over(const SharedReceiveQueue& old) noexcept {
  constexpr uint32_t kAtOnce = 512;
  if (!taken_from_) taken_from_ = old.cursor_.popped();
  const uint32_t end = old.cursor_.popped() - *taken_from_ + old.waiting();
  // An old ring that cannot be taken over is refused by take_over().
  if (!has_room_for(old) || end <= taken_ + kAtOnce) return true;
  take(old, taken_ + kAtOnce);
  return false;
}

bool SharedReceiveQueue::take_over(const SharedReceiveQueue& old) noexcept {
  const uint32_t count = old.waiting();
  if (!has_room_for(old)) return false;
  if (!taken_from_) taken_from_ = old.cursor_.popped();
  const uint32_t begin = old.cursor_.popped() - *taken_from_;
  take(old, begin + count);
  cursor_.begin_at(begin);
  store_release(header_.rq_consumer, begin);
  store_release(header_.rq_producer, begin + count);
  return true;
}

SharedReceiveRing::SharedReceiveRing(SharedMemory memory, const RingLayout& ring)
    : memory_(std::move(memory)), queue_(memory_.data(), ring) {}

SharedWorkQueues::SharedWorkQueues(SharedMemory memory, const QpLayout& layout,
                                   uint32_t max_message_bytes)
    : memory_(std::move(memory)),
      send_(memory_.data(), layout, max_message_bytes),
      receive_(memory_.data(), layout.receive) {}

void SharedWorkQueues::show_state(transport::QpState state) noexcept {
  // Either the program's post_recv sees ERROR and rings, or the flush that follows sees its entry.
  store_seq_cst(header_at(memory_.data()).qp_state, static_cast<uint32_t>(state));
}

void SharedWorkQueues::stamp_posts(bool wanted) noexcept {
  store_release(header_at(memory_.data()).stamps_posts, wanted ? 1 : 0);
}

void SharedWorkQueues::reset() noexcept {
  send_.reset();
  receive_.reset();
}

}  // namespace rocemu::daemon
