// MADs that wait for a search: one search for each destination, and bounds.
#include "emulator/daemon/cm_service/pending_mads.h"

#include <catch2/catch.hpp>

namespace rocemu::daemon {
namespace {

using Next = PendingMads::Next;

wire::Gid gid(uint8_t number) {
  wire::Gid gid;
  gid.bytes[15] = number;
  return gid;
}

cm::OutgoingMad mad_to(uint8_t number, uint8_t mark = 0, uint32_t device = 0) {
  cm::OutgoingMad mad{{device, gid(100), gid(number)}, {}};
  mad.mad[0] = std::byte{mark};
  return mad;
}

TEST_CASE("MADs of one destination share a search, and leave in order") {
  PendingMads pending;
  CHECK(pending.add(mad_to(1, 10)) == Next::search);
  CHECK(pending.add(mad_to(1, 11)) == Next::wait);
  CHECK(pending.add(mad_to(2, 12)) == Next::search);
  CHECK(pending.add(mad_to(1, 13, 1)) == Next::search);  // another device's
  CHECK(pending.searches() == 3);
  const auto mads = pending.take(0, gid(1));
  REQUIRE(mads.size() == 2);
  CHECK(mads[0].mad[0] == std::byte{10});
  CHECK(mads[1].mad[0] == std::byte{11});
  CHECK(pending.mads() == 2);
  CHECK(pending.take(0, gid(1)).empty());
  CHECK(pending.add(mad_to(1)) == Next::search);
}

TEST_CASE("Searches are bounded, and those under way take further MADs") {
  PendingMads pending({.max_searches = 2});
  CHECK(pending.add(mad_to(1)) == Next::search);
  CHECK(pending.add(mad_to(2)) == Next::search);
  CHECK(pending.add(mad_to(3)) == Next::no_more_searches);
  CHECK(pending.add(mad_to(2)) == Next::wait);
  CHECK(pending.mads() == 3);
  CHECK(pending.take(0, gid(3)).empty());
  CHECK(pending.take(0, gid(1)).size() == 1);
  CHECK(pending.add(mad_to(3)) == Next::search);
}

TEST_CASE("One destination's burst leaves room for a few MADs of each other one") {
  PendingMads pending({.sure_mads_per_destination = 2, .max_further_mads = 5});
  CHECK(pending.add(mad_to(1)) == Next::search);
  for (int i = 1; i < 5; ++i) CHECK(pending.add(mad_to(1)) == Next::wait);
  CHECK(pending.add(mad_to(1)) == Next::no_room);
  CHECK(pending.add(mad_to(2)) == Next::search);
  CHECK(pending.add(mad_to(2)) == Next::wait);
  CHECK(pending.add(mad_to(2)) == Next::no_room);
  CHECK(pending.take(0, gid(1)).size() == 5);
  CHECK(pending.add(mad_to(2)) == Next::wait);
  CHECK(pending.take(0, gid(2)).size() == 3);
  CHECK(pending.mads() == 0);
}

}  // namespace
}  // namespace rocemu::daemon
