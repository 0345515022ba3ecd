#include "dpdk_io/ip_host/neighbour_cache.h"

#include <catch2/catch.hpp>

#include "base/time.h"
#include "dpdk_io/ip_host/rate_limit.h"

namespace rocemu::dpdk_io {
namespace {

IpAddress numbered(size_t number) {
  return {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(number >> 16),
           static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)}};
}

}  // namespace

TEST_CASE("the cache is bounded, and the one heard of longest ago goes") {
  NeighbourCache cache;
  const MacAddress mac = {2};
  for (size_t i = 0; i < NeighbourCache::kMaxKnown + 10; ++i) {
    CHECK(cache.look_up(i, numbered(i)).ask);
    cache.learn(i, numbered(i), mac);
  }
  CHECK(cache.known() == NeighbourCache::kMaxKnown);
  const TimeNs now = NeighbourCache::kMaxKnown + 10;
  CHECK_FALSE(cache.look_up(now, numbered(9)).mac);
  CHECK(cache.look_up(now, numbered(10)).mac);
}

TEST_CASE("so many questions are open at a time, and the next ones have to wait") {
  NeighbourCache cache;
  for (size_t i = 0; i < 2 * NeighbourCache::kMaxAsked; ++i)
    CHECK(cache.look_up(0, numbered(i)).ask == (i < NeighbourCache::kMaxAsked));
  CHECK(cache.asked() == NeighbourCache::kMaxAsked);
  for (TimeNs now = 0; cache.next_deadline() != kNever; now = cache.next_deadline()) cache.due(now);
  CHECK(cache.asked() == 0);
  CHECK(cache.look_up(0, numbered(300)).ask);
}

TEST_CASE("a rate limit gives so many at once, and so many a second") {
  RateLimit limit(10, 5);
  unsigned allowed = 0;
  for (unsigned i = 0; i < 100; ++i) allowed += limit.allows(1'000'000'000) ? 1 : 0;
  CHECK(allowed == 5);
  for (unsigned i = 0; i < 1000; ++i)
    allowed += limit.allows(1'000'000'000 + i * 1'000'000ull) ? 1 : 0;
  CHECK(allowed >= 14);
  CHECK(allowed <= 15);
}

}  // namespace rocemu::dpdk_io
