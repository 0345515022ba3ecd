#include "dpdk_io/port/frame_queue.h"

#include <rte_mbuf.h>

#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <vector>

#include "dpdk_io/port/frame_pool.h"
#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kMostFrames = 16;

std::vector<rte_mbuf*> pop_all(FrameQueue& queue) {
  std::array<rte_mbuf*, kMostFrames> frames;
  const unsigned count = queue.pop(frames);
  return {frames.begin(), frames.begin() + count};
}

}  // namespace

TEST_CASE(
    "what a queue keeps stays in its order, where it is full and where its ring begins anew") {
  need_eal();
  const uint32_t capacity = GENERATE(5u, 8u);  // with a slot to spare, and with none
  const uint32_t before = GENERATE(0u, 3u, 7u);
  FramePool pool("keep_if", kMostFrames, 256);
  FrameQueue queue(capacity);
  for (uint32_t i = 0; i < before; ++i) {
    REQUIRE(queue.push(pool.allocate()));
    for (rte_mbuf* frame : pop_all(queue)) FramePool::free(frame);
  }
  std::vector<rte_mbuf*> frames;
  for (uint32_t i = 0; i < capacity; ++i) {
    frames.push_back(pool.allocate());
    REQUIRE(queue.push(frames.back()));
  }
  queue.keep_if([](rte_mbuf*) { return true; });
  rte_mbuf* const one_more = pool.allocate();
  CHECK_FALSE(queue.push(one_more));
  queue.keep_if([&](rte_mbuf* frame) { return frame != frames[1] && frame != frames[3]; });
  CHECK(queue.push(one_more));
  std::vector<rte_mbuf*> expected{frames[0], frames[2]};
  expected.insert(expected.end(), frames.begin() + 4, frames.end());
  expected.push_back(one_more);
  CHECK(pop_all(queue) == expected);
  queue.keep_if([](rte_mbuf*) { return false; });
  CHECK(queue.empty());
  expected.insert(expected.end(), {frames[1], frames[3]});
  FramePool::free_bulk(expected);
}

}  // namespace rocemu::dpdk_io
