#include <catch2/catch.hpp>

#include "base/time.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"

namespace rocemu::daemon {
namespace {

using transport::Completion;
using transport::WcStatus;

struct Cq {
  explicit Cq(uint32_t entries = 4) {
    SharedMemory shared("test", cq_memory_bytes(entries));
    memory = shared.data();
    ring = std::make_unique<SharedCompletionRing>(std::move(shared), entries, host);
  }
  rocemu_cq_header& header() { return *reinterpret_cast<rocemu_cq_header*>(memory); }
  const rocemu_cqe& entry(uint32_t index) {
    return reinterpret_cast<const rocemu_cqe*>(memory + ROCEMU_CQ_RING_OFFSET)[index];
  }
  bool push(uint64_t wr_id, bool solicited = false, WcStatus status = WcStatus::success) {
    Completion completion;
    completion.wr_id = wr_id;
    completion.solicited = solicited;
    completion.status = status;
    return ring->push(completion);
  }

  CompletionHost host{[] { return TimeNs{123}; }};
  std::byte* memory = nullptr;
  std::unique_ptr<SharedCompletionRing> ring;
};

}  // namespace

TEST_CASE("a key that was invalidated is told in place of an immediate") {
  Cq cq;
  Completion completion;
  completion.has_invalidated = true;
  completion.immediate = 0x77;
  REQUIRE(cq.ring->push(completion));
  CHECK(cq.entry(0).wc_flags == 8);
  CHECK(cq.entry(0).imm_or_rkey == 0x77);
}

TEST_CASE("completions appear when they are published, with every field") {
  Cq cq;
  Completion completion;
  completion.wr_id = 9;
  completion.qpn = wire::Qpn{77};
  completion.status = WcStatus::remote_access_error;
  completion.opcode = transport::WcOpcode::receive_rdma_with_imm;
  completion.has_immediate = true;
  completion.immediate = 0xa1b2c3d4;
  completion.byte_length = 4321;
  REQUIRE(cq.ring->push(completion));
  CHECK(cq.header().producer == 0);
  CHECK_FALSE(cq.ring->publish());
  CHECK(cq.header().producer == 1);
  const rocemu_cqe& entry = cq.entry(0);
  CHECK(entry.wr_id == 9);
  CHECK(entry.qp_num == 77);
  CHECK(entry.status == 10);
  CHECK(entry.opcode == 129);
  CHECK(entry.wc_flags == 2);
  CHECK(entry.imm_or_rkey == 0xa1b2c3d4);
  CHECK(entry.byte_length == 4321);
  CHECK(entry.timestamp_ns == 123);
  CHECK(entry.dead == 0);
}

TEST_CASE("a ring of which less is granted than it has slots is full when that is used") {
  Cq cq(5);
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 5; ++i) REQUIRE(cq.push(100 * round + i));
    CHECK_FALSE(cq.push(5));
    cq.ring->publish();
    CHECK(cq.entry((cq.header().producer - 1) & 7).wr_id == 100 * round + 4);
    cq.header().consumer = cq.header().producer;
  }
}

TEST_CASE("a full ring takes no more, says so, and goes on when the program has polled") {
  Cq cq;
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(cq.push(i));
  CHECK(cq.header().overrun == 0);
  CHECK_FALSE(cq.push(4));
  CHECK(cq.header().overrun == 1);
  cq.ring->publish();
  cq.header().consumer = 1;
  CHECK(cq.push(5));
  CHECK_FALSE(cq.push(6));
  CHECK(cq.entry(0).wr_id == 5);
}

TEST_CASE("a consumer index that never was makes the ring look full and does no harm") {
  Cq cq;
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(cq.push(i));
  cq.header().consumer = GENERATE(5u, 100u, 0x80000000u, 0xffffffffu);
  CHECK_FALSE(cq.push(4));
  CHECK(cq.entry(0).wr_id == 0);
}

TEST_CASE("an armed CQ asks for one event") {
  Cq cq;
  cq.push(1);
  CHECK_FALSE(cq.ring->publish());
  cq.header().arm = ROCEMU_CQ_ARM_NEXT;
  CHECK_FALSE(cq.ring->publish());  // nothing new
  cq.push(2);
  CHECK(cq.ring->publish());
  CHECK(cq.header().arm == ROCEMU_CQ_UNARMED);
  cq.push(3);
  CHECK_FALSE(cq.ring->publish());
}

TEST_CASE("a program that polls on the engine's core and is answered is noted") {
  constexpr uint32_t here = 3;
  Cq cq;
  cq.host.move_to(here);
  const auto noted = [&](uint32_t poller_core, transport::WcOpcode opcode) {
    cq.header().poller_core = poller_core;
    Completion completion;
    completion.opcode = opcode;
    cq.ring->push(completion);
    cq.ring->publish();
    cq.header().consumer = cq.header().producer;
    return cq.host.take_program_waits();
  };
  CHECK(noted(here, transport::WcOpcode::receive));
  CHECK(noted(here, transport::WcOpcode::rdma_read));
  // The peer's answer is what the program waits for.
  CHECK_FALSE(noted(here, transport::WcOpcode::send));
  CHECK_FALSE(noted(here, transport::WcOpcode::rdma_write));
  CHECK_FALSE(noted(here, transport::WcOpcode::tso));
  CHECK_FALSE(noted(here + 1, transport::WcOpcode::receive));
  CHECK_FALSE(noted(0, transport::WcOpcode::receive));
}

TEST_CASE("armed for solicited completions, only those and errors count") {
  Cq cq(16);
  cq.header().arm = ROCEMU_CQ_ARM_SOLICITED;
  cq.push(1);
  CHECK_FALSE(cq.ring->publish());
  CHECK(cq.header().arm == ROCEMU_CQ_ARM_SOLICITED);

  cq.push(2, true);
  cq.push(3);
  CHECK(cq.ring->publish());

  cq.header().arm = ROCEMU_CQ_ARM_SOLICITED;
  cq.push(4);
  CHECK_FALSE(cq.ring->publish());  // what was solicited before has had its event
  cq.push(5, false, WcStatus::flush_error);
  CHECK(cq.ring->publish());
}

TEST_CASE("an arm value that means nothing asks for nothing") {
  Cq cq;
  cq.header().arm = 0xdead;
  cq.push(1, true);
  CHECK_FALSE(cq.ring->publish());
}

TEST_CASE("a ring that takes over holds what was unread, in order, and the arming") {
  Cq old(4);
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(old.push(i));
  old.ring->publish();
  old.header().consumer = 3;
  REQUIRE(old.push(4));
  REQUIRE(old.push(5));
  old.ring->publish();
  old.header().arm = ROCEMU_CQ_ARM_NEXT;

  Cq small(2);
  CHECK_FALSE(small.ring->take_over(*old.ring));
  CHECK(old.header().arm == ROCEMU_CQ_ARM_NEXT);
  Cq large(8);
  REQUIRE(large.ring->take_over(*old.ring));
  CHECK(large.header().producer == 3);
  CHECK(large.header().consumer == 0);
  for (uint32_t i = 0; i < 3; ++i) CHECK(large.entry(i).wr_id == i + 3);
  CHECK(large.header().arm == ROCEMU_CQ_ARM_NEXT);
  CHECK(old.header().arm == ROCEMU_CQ_UNARMED);
  REQUIRE(large.push(6));
  CHECK(large.ring->publish());
  CHECK(large.entry(3).wr_id == 6);
}

TEST_CASE("a ring with much in it is taken over in pieces, while it goes on") {
  constexpr uint32_t kMany = 8192;
  Cq old(kMany);
  old.header().consumer = 0;
  for (uint64_t i = 0; i < kMany / 2; ++i) REQUIRE(old.push(i));
  old.ring->publish();
  Cq large(2 * kMany);
  unsigned pieces = 1;
  for (; !large.ring->prepare_to_take_over(*old.ring); ++pieces) {
    REQUIRE(pieces < kMany);
    REQUIRE(old.push(kMany / 2 + pieces - 1));
    old.ring->publish();
  }
  CHECK(pieces > 2);
  REQUIRE(large.ring->take_over(*old.ring));
  CHECK(large.header().producer == kMany / 2 + pieces - 1);
  for (uint32_t i = 0; i < large.header().producer; ++i) REQUIRE(large.entry(i).wr_id == i);
}

TEST_CASE("a ring whose completions are taken while it is taken over is refused") {
  Cq old(8192);
  for (uint64_t i = 0; i < 8000; ++i) REQUIRE(old.push(i));
  old.ring->publish();
  Cq large(16384);
  REQUIRE_FALSE(large.ring->prepare_to_take_over(*old.ring));
  old.header().consumer = 7;
  while (!large.ring->prepare_to_take_over(*old.ring)) continue;
  CHECK_FALSE(large.ring->take_over(*old.ring));
}

TEST_CASE("a consumer index that never was possible is no reason to copy") {
  Cq old(4);
  REQUIRE(old.push(1));
  old.ring->publish();
  old.header().consumer = 77;
  Cq large(8);
  CHECK_FALSE(large.ring->take_over(*old.ring));
}

}  // namespace rocemu::daemon
