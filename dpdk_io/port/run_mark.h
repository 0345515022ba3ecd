// A frame between two devices of one switch may be a run: several packets in one, as a TSO frame
// between two virtual NICs is. The mbuf says how it would be cut, and how long its packets' frames
// would be, which is what is counted. A switch carries runs as long as nobody looks at frames; one
// that meets somebody who does is lost, and its sender sends the packets again one by one.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

namespace rocemu::dpdk_io {

struct RunMark {
  uint32_t packets = 1;        // at most 255
  uint32_t segment_bytes = 0;  // payload of each but the last; 0: no run
  uint32_t frame_bytes = 0;    // of all packets' own frames together
};

// A new frame is no run.
inline void mark_run(rte_mbuf* frame, const RunMark& mark) noexcept {
  frame->l4_len = mark.packets & 0xff;
  frame->tso_segsz = mark.segment_bytes & 0xffff;
  frame->hash.usr = mark.frame_bytes;
}

inline uint32_t segment_bytes(const rte_mbuf* frame) noexcept { return frame->tso_segsz; }
inline bool is_run(const rte_mbuf* frame) noexcept { return frame->tso_segsz != 0; }

// What a frame of a switch counts as.
inline uint32_t counted_packets(const rte_mbuf* frame) noexcept {
  return is_run(frame) ? frame->l4_len : 1;
}
inline uint32_t counted_bytes(const rte_mbuf* frame) noexcept {
  return is_run(frame) ? frame->hash.usr : frame->pkt_len;
}

}  // namespace rocemu::dpdk_io
