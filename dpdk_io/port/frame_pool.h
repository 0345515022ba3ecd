// A bounded pool of frame buffers (DPDK mbufs). A frame lies in one segment; its first byte, as
// allocated, is on a 64-byte boundary with at least 128 bytes of headroom before it, so that the
// start can be moved down (rte_pktmbuf_prepend) to put a payload on a boundary instead.
#pragma once

#include <span>

struct rte_mbuf;
struct rte_mempool;

namespace rocemu::dpdk_io {

// Needs an Eal, and must outlive every Port its frames went to. All calls except the constructor
// and the destructor may come from any thread; one that is registered with DPDK
// (rte_thread_register) has a cache of its own and pays less.
class FramePool {
 public:
  // `name` is unique in the process, at most 25 characters; `data_room_bytes` is the longest frame.
  // Memory is taken for `frames` × (about data_room_bytes + 400). Throws std::runtime_error with a
  // message that says what to do.
  FramePool(const char* name, unsigned frames, unsigned data_room_bytes);
  ~FramePool();

  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // The memory is left to DPDK when the pool goes, for one that lives as long as the process: to
  // free it is to write zeros over all of it, pages that no frame was ever in among them.
  void leave_memory() noexcept { leaves_memory_ = true; }

  // An empty frame, or nullptr when the pool has none left.
  rte_mbuf* allocate() noexcept;
  // Fills `frames` from the front and returns how many: fewer than asked for when the pool ran out.
  unsigned allocate_bulk(std::span<rte_mbuf*> frames) noexcept;

  static void free(rte_mbuf* frame) noexcept;
  static void free_bulk(std::span<rte_mbuf*> frames) noexcept;

  // Frames nobody holds. Walks all caches: for reports, not for the data path.
  unsigned available() const noexcept;
  unsigned capacity() const noexcept;

  // The pool as drivers want it, which fill frames of their own accord.
  rte_mempool* mempool() const noexcept { return pool_; }

 private:
  rte_mempool* pool_;
  bool leaves_memory_ = false;
};

}  // namespace rocemu::dpdk_io
