// MbufFrames tells the links and switches of network/ what a frame is here: an mbuf in one segment,
// with a reference for each holder.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>

#include "dpdk_io/port/frame_pool.h"
#include "impairment/link.h"

namespace rocemu::dpdk_io {

struct MbufFrames {
  using Frame = rte_mbuf*;

  static const std::byte* bytes(const rte_mbuf* frame) noexcept {
    return rte_pktmbuf_mtod(frame, const std::byte*);
  }
  static size_t length_bytes(const rte_mbuf* frame) noexcept { return frame->data_len; }
  static void share(rte_mbuf* frame, unsigned more) noexcept {
    rte_mbuf_refcnt_update(frame, static_cast<int16_t>(more));
  }
  static void release(rte_mbuf* frame) noexcept { FramePool::free(frame); }

  // Returns the bytes of the frame itself when nobody else holds it, else those of a copy, for
  // which one reference is given up. nullptr, and nothing given up, when there is no buffer for the
  // copy.
  static std::byte* writable(rte_mbuf*& frame) noexcept {
    if (rte_mbuf_refcnt_read(frame) > 1) {
      rte_mbuf* const own = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
      if (own == nullptr) return nullptr;
      FramePool::free(frame);
      frame = own;
    }
    return rte_pktmbuf_mtod(frame, std::byte*);
  }
  static void shorten(rte_mbuf* frame, size_t length_bytes) noexcept {
    frame->data_len = static_cast<uint16_t>(length_bytes);
    frame->pkt_len = static_cast<uint32_t>(length_bytes);
  }
  static bool corrupt(rte_mbuf*& frame, const impairment::Arrival& arrival) noexcept {
    std::byte* const bytes = writable(frame);
    if (bytes != nullptr) impairment::corrupt(arrival, {bytes, frame->data_len});
    return bytes != nullptr;
  }
};

}  // namespace rocemu::dpdk_io
