#include "emulator/inspection/access_log.h"

#include <catch2/catch.hpp>

using namespace rocemu;
using namespace rocemu::inspection;

namespace {

int space;

Access access(AccessKind kind, uint32_t qpn, uint64_t address, uint32_t length_bytes, Step taken,
              Step made) {
  return {.kind = kind,
          .space = &space,
          .address = address,
          .length_bytes = length_bytes,
          .content = made,
          .requester = {0, wire::Qpn{qpn}},
          .request = made,
          .taken = taken,
          .made = made};
}

Step never_over(const Access&) { return 0; }

}  // namespace

TEST_CASE("A write races with one that was made while it was under way, and no other") {
  AccessLog log(never_over);
  CHECK_FALSE(log.add(access(AccessKind::write, 1, 0x1000, 100, 1, 5)));
  SECTION("taken before that was made") {
    const auto other = log.add(access(AccessKind::write, 2, 0x1063, 100, 4, 6));
    REQUIRE(other);
    CHECK(other->request == 5);
  }
  SECTION("taken after") { CHECK_FALSE(log.add(access(AccessKind::write, 2, 0x1000, 100, 6, 7))); }
  SECTION("beside it") { CHECK_FALSE(log.add(access(AccessKind::write, 2, 0x1064, 100, 4, 6))); }
  SECTION("of the same queue") {
    CHECK_FALSE(log.add(access(AccessKind::write, 1, 0x1000, 100, 4, 6)));
  }
}

TEST_CASE("The other writer is found behind many of one's own") {
  AccessLog log(never_over);
  log.add(access(AccessKind::write, 2, 0x1000, 100, 1, 5));
  for (Step i = 0; i < 1000; ++i) log.add(access(AccessKind::write, 1, 0x9000, 100, 2, 6 + i));
  CHECK(log.add(access(AccessKind::write, 1, 0x1000, 100, 3, 2000)));
}

TEST_CASE("What is too long ago is forgotten") {
  AccessLog log(never_over);
  log.add(access(AccessKind::write, 2, 0x1000, 100, 1, 5));
  for (Step i = 0; i < AccessLog::kWrites; ++i)
    log.add(access(AccessKind::write, 3 + i % 2, 0x9000 + 100 * i, 100, 2, 6 + i));
  CHECK_FALSE(log.add(access(AccessKind::write, 1, 0x1000, 100, 3, 9000)));
}

TEST_CASE("The same few bytes written twice are no race") {
  AccessLog log(never_over);
  Access first = access(AccessKind::write, 1, 0x1000, 8, 1, 5);
  Access second = access(AccessKind::write, 2, 0x1000, 8, 2, 6);
  first.content = second.content = 1;
  log.add(first);
  CHECK_FALSE(log.add(second));
  second.content = 2;
  CHECK(log.add(second));
}

TEST_CASE("Addresses at the end of memory wrap nowhere") {
  AccessLog log(never_over);
  log.add(access(AccessKind::write, 1, ~uint64_t{0} - 9, 10, 1, 5));
  CHECK_FALSE(log.add(access(AccessKind::write, 2, 0, 10, 2, 6)));
  CHECK(log.add(access(AccessKind::write, 3, ~uint64_t{0}, 1, 2, 7)));
}
