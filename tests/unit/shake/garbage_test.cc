#include "emulator/shake/queues/garbage.h"

#include <catch2/catch.hpp>

#include "tests/unit/shake/fakes.h"
#include "verbs_shim/abi/garbage.h"

namespace rocemu::shake {

using test::completion;
using transport::WcStatus;

TEST_CASE("of a failed completion only what has a meaning is kept") {
  test::FakeRing::State state;
  uint64_t done = 0;
  Garbage ring(std::make_unique<test::FakeRing>(state), done);
  transport::Completion failed = completion(7, true, 99, WcStatus::flush_error);
  failed.solicited = true;
  failed.inline_data.length_bytes = 4;
  REQUIRE(ring.push(failed));
  ring.show();
  REQUIRE(state.shown.size() == 1);
  const transport::Completion& shown = state.shown[0];
  CHECK(shown.wr_id == 99);
  CHECK(shown.qpn == wire::Qpn{7});
  CHECK(shown.status == WcStatus::flush_error);
  CHECK(shown.solicited);
  CHECK(shown.opcode != transport::WcOpcode::receive);
  CHECK(shown.byte_length == ROCEMU_GARBAGE_BYTE_LEN);
  CHECK(shown.immediate == ROCEMU_GARBAGE_IMM_DATA);
  CHECK(shown.source_qp.value == ROCEMU_GARBAGE_SRC_QP);
  CHECK(shown.inline_data.length_bytes == 0);  // nothing is written to the program's memory
  CHECK(done == 1);
}

TEST_CASE("successes, and errors that come with a tag, are as they are") {
  for (const WcStatus status :
       {WcStatus::success, WcStatus::tm_error, WcStatus::tm_rendezvous_incomplete}) {
    test::FakeRing::State state;
    uint64_t done = 0;
    Garbage ring(std::make_unique<test::FakeRing>(state), done);
    transport::Completion kept = completion(7, true, 99, status);
    kept.byte_length = 12;
    kept.tag_flags = 3;
    ring.push(kept);
    ring.show();
    CHECK(state.shown[0].byte_length == 12);
    CHECK(state.shown[0].tag_flags == 3);
    CHECK(state.shown[0].opcode == transport::WcOpcode::receive);
    CHECK(done == 0);
  }
}

}  // namespace rocemu::shake
