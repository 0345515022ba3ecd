#include "dpdk_io/port/frame_pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rocemu::dpdk_io {
namespace {

// Frames that a thread registered with DPDK keeps for itself; DPDK lets it grow to 1.5 times that
// before it gives some back.
constexpr unsigned kThreadCacheFrames = 256;
// And in bytes: frames that one thread takes and another one frees go through both caches, and with
// more than this through memory.
constexpr unsigned kThreadCacheBytes = 512 * 1024;
// DPDK wants a cache of at most two thirds of the pool.
constexpr unsigned kCacheDivisor = 2;
// Last in, first out: the frames in use stay few, and stay in the CPU's cache.
constexpr char kPoolOrder[] = "stack";
constexpr unsigned kLongestDataRoomBytes = UINT16_MAX - RTE_PKTMBUF_HEADROOM - RTE_CACHE_LINE_SIZE;

[[noreturn]] void fail(const char* name, const std::string& why) {
  throw std::runtime_error("frame pool " + std::string(name) + ": " + why);
}

}  // namespace

FramePool::FramePool(const char* name, unsigned frames, unsigned data_room_bytes) {
  if (frames == 0) fail(name, "a pool needs at least one frame");
  if (data_room_bytes == 0 || data_room_bytes > kLongestDataRoomBytes) {
    fail(name, "frames of " + std::to_string(data_room_bytes) + " bytes, allowed are 1 to " +
                   std::to_string(kLongestDataRoomBytes));
  }
  const unsigned room_bytes =
      RTE_ALIGN_CEIL(data_room_bytes, unsigned{RTE_CACHE_LINE_SIZE}) + RTE_PKTMBUF_HEADROOM;
  const unsigned cache = std::min(
      {kThreadCacheFrames, std::max(kThreadCacheBytes / room_bytes, 1U), frames / kCacheDivisor});
  pool_ = rte_pktmbuf_pool_create_by_ops(name, frames, cache, 0, static_cast<uint16_t>(room_bytes),
                                         SOCKET_ID_ANY, kPoolOrder);
  if (pool_ != nullptr) return;
  if (rte_errno == ENOMEM) {
    const uint64_t object_bytes =
        rte_mempool_calc_obj_size(sizeof(rte_mbuf) + room_bytes, 0, nullptr);
    fail(name, "not enough DPDK memory for " + std::to_string(frames) + " frames of " +
                   std::to_string(data_room_bytes) + " bytes, which take about " +
                   std::to_string((object_bytes * frames >> 20) + 1) +
                   " MB: give DPDK more memory or the pool fewer frames");
  }
  if (rte_errno == EEXIST) fail(name, "there is a pool of this name already");
  fail(name, std::strerror(rte_errno));
}

FramePool::~FramePool() {
  if (!leaves_memory_) rte_mempool_free(pool_);
}

rte_mbuf* FramePool::allocate() noexcept { return rte_pktmbuf_alloc(pool_); }

unsigned FramePool::allocate_bulk(std::span<rte_mbuf*> frames) noexcept {
  const unsigned wanted = static_cast<unsigned>(frames.size());
  if (rte_pktmbuf_alloc_bulk(pool_, frames.data(), wanted) == 0) return wanted;
  unsigned got = 0;
  while (got < wanted && (frames[got] = rte_pktmbuf_alloc(pool_)) != nullptr) ++got;
  return got;
}

void FramePool::free(rte_mbuf* frame) noexcept { rte_pktmbuf_free(frame); }

void FramePool::free_bulk(std::span<rte_mbuf*> frames) noexcept {
  rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(frames.size()));
}

unsigned FramePool::available() const noexcept { return rte_mempool_avail_count(pool_); }

unsigned FramePool::capacity() const noexcept { return pool_->size; }

}  // namespace rocemu::dpdk_io
