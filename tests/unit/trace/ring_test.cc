#include "emulator/trace/record/ring.h"

#include <catch2/catch.hpp>
#include <thread>

namespace rocemu::trace {

namespace {

bool put(Ring& ring, uint32_t psn) {
  Record* const record = ring.claim();
  if (record == nullptr) return false;
  *record = {};
  record->psn = psn;
  ring.commit();
  return true;
}

std::vector<uint32_t> take_all(Ring& ring) {
  std::vector<uint32_t> psns;
  while (!ring.is_empty()) {
    const auto piece = ring.peek();
    for (const Record& record : piece) psns.push_back(record.psn);
    ring.release(piece.size());
  }
  return psns;
}

}  // namespace

TEST_CASE("trace ring: what finds no room is counted") {
  Ring ring(3, Ring::WhenFull::lose_new);
  REQUIRE(ring.capacity() == 4);
  for (uint32_t i = 0; i < 6; ++i) CHECK(put(ring, i) == (i < 4));
  CHECK(ring.take_lost() == 2);
  CHECK(ring.take_lost() == 0);
  CHECK(take_all(ring) == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(put(ring, 6));
  CHECK(take_all(ring) == std::vector<uint32_t>{6});
}

TEST_CASE("trace ring: one that forgets keeps the last ones") {
  Ring ring(4, Ring::WhenFull::forget_old);
  for (uint32_t i = 0; i < 10; ++i) CHECK(put(ring, i));
  CHECK(take_all(ring) == std::vector<uint32_t>{6, 7, 8, 9});
  for (uint32_t i = 10; i < 16; ++i) CHECK(put(ring, i));
  CHECK(take_all(ring) == std::vector<uint32_t>{12, 13, 14, 15});
  CHECK(ring.take_lost() == 0);
}

TEST_CASE("trace ring: says that it is half full, once") {
  Ring ring(8, Ring::WhenFull::lose_new);
  std::vector<int> called;
  for (int i = 1; i <= 8; ++i) {
    REQUIRE(ring.claim() != nullptr);
    if (ring.commit()) called.push_back(i);
  }
  CHECK(called == std::vector<int>{4, 8});
}

TEST_CASE("trace ring: a reader beside the writer gets what was not lost, in order") {
  constexpr uint32_t kRecords = 100'000;
  Ring ring(64, Ring::WhenFull::lose_new);
  std::thread writer([&] {
    for (uint32_t i = 1; i <= kRecords; ++i)
      while (!put(ring, i)) std::this_thread::yield();
  });
  uint32_t last = 0;
  bool in_order = true;
  while (last < kRecords)
    for (const uint32_t psn : take_all(ring)) {
      in_order = in_order && psn == last + 1;
      last = psn;
    }
  writer.join();
  CHECK(in_order);
}

}  // namespace rocemu::trace
