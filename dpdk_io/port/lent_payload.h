// A run (run_mark.h) may leave its payload in memory that this process has mapped and only say
// where: then it is copied once, by whoever receives it. The memory is somebody's who may take it
// away at any time: it is read by guarded copies alone (emulator/dma/guarded_access.h), and before
// its program has it back the switch takes what runs under way have lent (Switch::take_lent).
//
// The request of a READ may say where its data belongs: the device that answers it copies them
// there, and its runs lend them from there.
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

// Of a READ request; it holds while Port::landing_epoch() is still the same.
struct Landing {
  std::byte* at = nullptr;
  uint64_t epoch = 0;
  uint32_t requester_qpn = 0;
};
static_assert(sizeof(Landing) <= RTE_PKTMBUF_HEADROOM);

// Copies so many bytes from lent memory. False: it has gone.
using TakeLent = bool (*)(std::byte* to, const std::byte* lent, size_t length_bytes) noexcept;

// What stands before a frame, in its buffer's headroom. With a new frame nothing does.
enum class BeforeFrame : uint8_t { nothing, lent_payload, landing };

template <class What>
void put_before(rte_mbuf* frame, const What& what, BeforeFrame kind) noexcept {
  new (rte_pktmbuf_mtod(frame, std::byte*) - sizeof what) What(what);
  frame->l3_len = static_cast<uint8_t>(kind);
}

// Null: something else does, or nothing.
template <class What>
const What* find_before(const rte_mbuf* frame, BeforeFrame kind) noexcept {
  if (frame->l3_len != static_cast<uint8_t>(kind)) return nullptr;
  return std::launder(
      reinterpret_cast<const What*>(rte_pktmbuf_mtod(frame, const std::byte*) - sizeof(What)));
}

inline void mark_lent(rte_mbuf* frame, const LentPayload& payload) noexcept {
  put_before(frame, payload, BeforeFrame::lent_payload);
}
// Null: the payload is in the frame.
inline const LentPayload* lent_payload(const rte_mbuf* frame) noexcept {
  return find_before<LentPayload>(frame, BeforeFrame::lent_payload);
}

inline void mark_landing(rte_mbuf* frame, const Landing& landing) noexcept {
  put_before(frame, landing, BeforeFrame::landing);
}
// Null: there is none.
inline const Landing* landing_of(const rte_mbuf* frame) noexcept {
  return find_before<Landing>(frame, BeforeFrame::landing);
}

inline void forget_landing(rte_mbuf* frame) noexcept {
  if (landing_of(frame) != nullptr) frame->l3_len = static_cast<uint8_t>(BeforeFrame::nothing);
}

// False: the payload has gone, and the frame is to be lost.
inline bool take_lent(rte_mbuf* frame, TakeLent take) noexcept {
  const LentPayload* const lent = lent_payload(frame);
  if (lent == nullptr) return true;
  frame->l3_len = static_cast<uint8_t>(BeforeFrame::nothing);
  return take(rte_pktmbuf_mtod_offset(frame, std::byte*, lent->offset_bytes), lent->bytes,
              lent->length_bytes);
}

}  // namespace rocemu::dpdk_io
