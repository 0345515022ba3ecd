#include "emulator/device/objects/tag_list.h"

#include <catch2/catch.hpp>

using namespace rocemu;
using namespace rocemu::device;

namespace {

uint32_t add(TagList& list, uint64_t wr_id, uint64_t tag, uint64_t mask = ~uint64_t{0}) {
  TagOp op;
  op.receive_wr_id = wr_id;
  op.tag = tag;
  op.mask = mask;
  op.sges = {{0x1000, 100, wire::LKey{1}}, {0x2000, 28, wire::LKey{1}}};
  return list.add(op).value_or(0);
}

// 0: nothing matches.
uint64_t take(TagList& list, uint64_t tag) {
  transport::ReceiveWork buffer;
  return list.take(tag, buffer) ? buffer.wr_id : 0;
}

}  // namespace

TEST_CASE("A tag takes the first buffer that it matches") {
  TagList list(8);
  add(list, 1, 5);
  add(list, 2, 0x100, 0xff00);
  add(list, 3, 5);
  add(list, 4, 0, 0);
  CHECK(take(list, 5) == 1);
  CHECK(take(list, 0x155) == 2);
  CHECK(take(list, 5) == 3);
  CHECK(take(list, 99) == 4);
  CHECK(take(list, 99) == 0);
}

TEST_CASE("A buffer bears all that was posted") {
  TagList list(1);
  add(list, 7, 5);
  transport::ReceiveWork buffer;
  REQUIRE(list.take(5, buffer));
  CHECK(buffer.wr_id == 7);
  CHECK(buffer.length_bytes == 128);
  REQUIRE(buffer.sges.view().size() == 2);
  CHECK(buffer.sges.view()[1].address == 0x2000);
}

TEST_CASE("A buffer goes once, taken or removed") {
  TagList list(8);
  const uint32_t first = add(list, 1, 5);
  const uint32_t second = add(list, 2, 5);
  CHECK(first != second);
  CHECK(take(list, 5) == 1);
  CHECK_FALSE(list.remove(first));
  CHECK(list.remove(second));
  CHECK_FALSE(list.remove(second));
  CHECK_FALSE(list.remove(0));
  CHECK(take(list, 5) == 0);
}

TEST_CASE("The list is bounded, and what is being read counts") {
  TagList list(2);
  CHECK(add(list, 1, 1) != 0);
  CHECK(add(list, 2, 2) != 0);
  CHECK(add(list, 3, 3) == 0);
  CHECK(take(list, 1) == 1);
  list.begin_read();
  CHECK(add(list, 3, 3) == 0);
  list.end_read();
  CHECK(add(list, 3, 3) != 0);
}

TEST_CASE("What is added without knowing of unexpected messages waits for the program's word") {
  TagList list(8);
  add(list, 1, 1);
  list.note_unexpected();
  CHECK_FALSE(list.in_step());
  add(list, 2, 2);
  CHECK(take(list, 2) == 0);
  CHECK(take(list, 1) == 1);  // it was there before
  list.synchronize(0);
  CHECK(take(list, 2) == 0);
  list.synchronize(1);
  CHECK(list.in_step());
  CHECK(take(list, 2) == 2);
}

TEST_CASE("Removing a buffer that matches does not wake one that waits") {
  TagList list(8);
  const uint32_t first = add(list, 1, 1);
  list.note_unexpected();
  add(list, 2, 2);
  CHECK(list.remove(first));
  CHECK(take(list, 2) == 0);
}
