#include "dpdk_io/port/frame_pool.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kLongestFrameBytes = 4300;

}  // namespace

TEST_CASE("the longest frame fits one segment, on a 64-byte boundary, with headroom") {
  need_eal();
  FramePool pool("one_segment", 32, kLongestFrameBytes);
  rte_mbuf* frame = pool.allocate();
  REQUIRE(frame != nullptr);
  CHECK(frame->nb_segs == 1);
  CHECK(rte_pktmbuf_tailroom(frame) >= kLongestFrameBytes);
  CHECK(rte_pktmbuf_headroom(frame) >= 64);
  CHECK(reinterpret_cast<uintptr_t>(rte_pktmbuf_mtod(frame, char*)) % 64 == 0);
  FramePool::free(frame);
}

TEST_CASE("a pool hands out all its frames, then none, and takes them back") {
  need_eal();
  const unsigned frames = GENERATE(1u, 7u, 1000u);
  FramePool pool("exhaust", frames, 256);
  std::vector<rte_mbuf*> taken;
  while (rte_mbuf* frame = pool.allocate()) taken.push_back(frame);
  CHECK(taken.size() == frames);
  CHECK(pool.available() == 0);
  std::ranges::sort(taken);
  CHECK(std::ranges::adjacent_find(taken) == taken.end());

  FramePool::free_bulk(taken);
  CHECK(pool.available() == frames);
}

TEST_CASE("a bulk allocation that asks for too much gets what there is") {
  need_eal();
  FramePool pool("bulk", 100, 256);
  std::vector<rte_mbuf*> taken(80);
  CHECK(pool.allocate_bulk(taken) == 80);
  std::vector<rte_mbuf*> rest(80);
  CHECK(pool.allocate_bulk(rest) == 20);
  rest.resize(20);
  CHECK(pool.allocate_bulk(taken) == 0);
}

TEST_CASE("a pool that cannot be made says why") {
  need_eal();
  CHECK_THROWS_WITH(FramePool("large", 1'000'000, 4210),
                    Catch::Contains("large") && Catch::Contains("not enough DPDK memory") &&
                        Catch::Contains("MB"));
  CHECK_THROWS_WITH(FramePool("none", 0, 4210), Catch::Contains("at least one frame"));
  CHECK_THROWS_WITH(FramePool("jumbo", 16, 70'000), Catch::Contains("70000 bytes"));
  const FramePool pool("twice", 16, 256);
  CHECK_THROWS_WITH(FramePool("twice", 16, 256), Catch::Contains("this name"));
}

}  // namespace rocemu::dpdk_io
