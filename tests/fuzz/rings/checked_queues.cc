#include "tests/fuzz/rings/checked_queues.h"

#include <utility>

#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

using transport::WcStatus;

namespace {

uint64_t sum_of(const transport::SgeList& sges) {
  uint64_t total = 0;
  for (const transport::Sge& sge : sges.view()) {
    expect(sge.length_bytes > 0, "empty elements are left out");
    total += sge.length_bytes;
  }
  return total;
}

}  // namespace

CheckedQueues::CheckedQueues(daemon::SharedMemory memory, const daemon::QpLayout& layout,
                             uint32_t max_message_bytes)
    : memory_(memory.data()),
      layout_(layout),
      max_message_bytes_(max_message_bytes),
      queues_(std::move(memory), layout, max_message_bytes) {}

void CheckedQueues::reset() noexcept {
  sends_held_ = 0;
  queues_.reset();
}

bool CheckedQueues::pop(transport::SendWork& work) noexcept {
  if (!queues_.send().pop(work)) return false;
  // One more than the ring holds when its producer index was nonsense.
  expect(++sends_held_ <= layout_.send.entries + 1, "no more is taken than the ring holds");
  if (work.fault != WcStatus::success) return true;
  expect(work.length_bytes <= max_message_bytes_, "a message is no longer than the device says");
  expect((!is_atomic(work.opcode) && work.opcode != transport::WorkOpcode::atomic_write) ||
             work.length_bytes == 8,
         "an atomic is 8 bytes long");
  expect(work.opcode != transport::WorkOpcode::flush || work.length_bytes == 0,
         "a FLUSH has no payload");
  if (work.opcode == transport::WorkOpcode::tso) check_segmentation(work);
  if (work.inline_payload != nullptr) {
    check_inline(work);
  } else {
    expect(work.sges.view().size() <= layout_.send.max_sge, "no more SGEs than granted");
    expect(sum_of(work.sges) == work.length_bytes, "a message is as long as its SGEs");
    if (work.inline_wqe_data != nullptr) check_inline_wqe_data(work);
  }
  return true;
}

void CheckedQueues::check_inline(const transport::SendWork& work) const {
  expect(!brings_data(work.opcode), "only sends and writes have inline payload");
  expect(work.opcode == transport::WorkOpcode::atomic_write ||
             work.length_bytes <= layout_.max_inline_data,
         "no more inline data than granted");
  if (work.length_bytes == 0) return;
  const std::byte* const ring = memory_ + layout_.send.offset_bytes;
  const auto offset = static_cast<size_t>(work.inline_payload - ring);
  expect(offset < layout_.send.size_bytes() &&
             offset % layout_.send.stride_bytes + work.length_bytes <= layout_.send.stride_bytes,
         "inline payload lies in its slot");
}

void CheckedQueues::check_segmentation(const transport::SendWork& work) const {
  const std::span<const std::byte> headers = work.segmentation.headers;
  expect(layout_.max_tso_header > 0 && headers.size() <= layout_.max_tso_header,
         "no longer headers than asked for");
  const std::byte* const ring = memory_ + layout_.send.offset_bytes;
  const auto offset = static_cast<size_t>(headers.data() - ring);
  expect(offset < layout_.send.size_bytes() &&
             offset % layout_.send.stride_bytes + headers.size() <= layout_.send.stride_bytes,
         "headers lie in their slot");
}

void CheckedQueues::check_inline_wqe_data(const transport::SendWork& work) const {
  expect(work.sges.view().size() == 1 && work.length_bytes <= ROCEMU_INLINE_WQE_DATA_MAX,
         "inline WQE data is short and of one element");
  const std::byte* const ring = memory_ + layout_.send.offset_bytes;
  const auto offset = static_cast<size_t>(work.inline_wqe_data - ring);
  expect(offset < layout_.send.size_bytes() &&
             offset % layout_.send.stride_bytes == offsetof(rocemu_send_wqe, compare_add),
         "inline WQE data lies in its slot");
}

void CheckedQueues::release(uint32_t count) noexcept {
  expect(count <= sends_held_, "only what was taken is released");
  sends_held_ -= count;
  queues_.send().release(count);
}

bool CheckedQueues::pop(transport::ReceiveWork& work) noexcept {
  if (!queues_.receive().pop(work)) return false;
  if (work.fault != WcStatus::success) return true;
  expect(work.sges.view().size() <= layout_.receive.max_sge, "no more SGEs than granted");
  expect(sum_of(work.sges) == work.length_bytes, "a receive is as long as its SGEs");
  return true;
}

}  // namespace rocemu::fuzz
