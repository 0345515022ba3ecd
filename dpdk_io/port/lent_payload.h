// A run (run_mark.h) may leave its payload in memory that this process has mapped and only say
// where: then it is copied once, by whoever receives it. The memory is somebody's who may take it
// away at any time: it is read by guarded copies alone (emulator/dma/guarded_access.h), and before
// its program has it back the switch takes what runs under way have lent (Switch::take_lent).
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace rocemu::dpdk_io {

struct LentPayload {
  const std::byte* bytes = nullptr;
  uint32_t length_bytes = 0;
  uint32_t offset_bytes = 0;  // where it belongs in the frame, which has the room
};
static_assert(sizeof(LentPayload) <= RTE_PKTMBUF_HEADROOM);

// Copies so many bytes from lent memory. False: it has gone.
using TakeLent = bool (*)(std::byte* to, const std::byte* lent, size_t length_bytes) noexcept;

// It stands before the frame, in the buffer's headroom. A new frame lends nothing.
inline void mark_lent(rte_mbuf* frame, const LentPayload& payload) noexcept {
  new (rte_pktmbuf_mtod(frame, std::byte*) - sizeof payload) LentPayload(payload);
  frame->l3_len = 1;
}

// Null: the payload is in the frame.
inline const LentPayload* lent_payload(const rte_mbuf* frame) noexcept {
  if (frame->l3_len == 0) return nullptr;
  return std::launder(reinterpret_cast<const LentPayload*>(
      rte_pktmbuf_mtod(frame, const std::byte*) - sizeof(LentPayload)));
}

// False: the payload has gone, and the frame is to be lost.
inline bool take_lent(rte_mbuf* frame, TakeLent take) noexcept {
  const LentPayload* const lent = lent_payload(frame);
  if (lent == nullptr) return true;
  frame->l3_len = 0;
  return take(rte_pktmbuf_mtod_offset(frame, std::byte*, lent->offset_bytes), lent->bytes,
              lent->length_bytes);
}

}  // namespace rocemu::dpdk_io
