// The NIC's side of the work queues against a program that writes whatever it likes.
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_work_queues.h"

namespace rocemu::daemon {
namespace {

using transport::ReceiveWork;
using transport::SendWork;
using transport::WcStatus;
using transport::WorkOpcode;

constexpr uint32_t kMaxMessage = 1u << 30;
constexpr uint8_t kWrWrite = 0, kWrSend = 2, kWrRead = 4, kWrFetchAdd = 6, kWrLocalInv = 7,
                  kWrBindMw = 8, kWrSendInv = 9, kWrTso = 10, kWrFlush = 14, kWrAtomicWrite = 15;

// Both sides of one QP's memory.
struct Program {
  explicit Program(uint32_t entries = 8, uint32_t sges = 2, uint32_t inline_data = 64,
                   uint32_t tso_header = 0)
      : layout(lay_out_qp({}, spec(entries, sges, inline_data, tso_header))) {
    SharedMemory shared("test", layout.memory_bytes);
    memory = shared.data();
    queues = std::make_unique<SharedWorkQueues>(std::move(shared), layout, kMaxMessage);
  }

  static device::QpSpec spec(uint32_t entries, uint32_t sges, uint32_t inline_data,
                             uint32_t tso_header = 0) {
    device::QpSpec spec;
    spec.max_tso_header = tso_header;
    spec.max_send_wr = spec.max_recv_wr = entries;
    spec.max_send_sge = spec.max_recv_sge = sges;
    spec.max_inline_data = inline_data;
    return spec;
  }

  rocemu_queue_header& header() { return *reinterpret_cast<rocemu_queue_header*>(memory); }
  std::byte* send_slot(uint32_t index) {
    return memory + layout.send.offset_bytes +
           size_t{index & (layout.send.entries - 1)} * layout.send.stride_bytes;
  }
  std::byte* receive_slot(uint32_t index) {
    return memory + layout.receive.offset_bytes +
           size_t{index & (layout.receive.entries - 1)} * layout.receive.stride_bytes;
  }

  void post(const rocemu_send_wqe& wqe, std::initializer_list<rocemu_sge> sges = {}) {
    std::byte* slot = send_slot(header().sq_producer);
    std::memcpy(slot, &wqe, sizeof(wqe));
    std::copy(sges.begin(), sges.end(), reinterpret_cast<rocemu_sge*>(slot + sizeof(wqe)));
    ++header().sq_producer;
  }
  void post(const rocemu_recv_wqe& wqe, std::initializer_list<rocemu_sge> sges = {}) {
    std::byte* slot = receive_slot(header().rq_producer);
    std::memcpy(slot, &wqe, sizeof(wqe));
    std::copy(sges.begin(), sges.end(), reinterpret_cast<rocemu_sge*>(slot + sizeof(wqe)));
    ++header().rq_producer;
  }

  // The status a request is handed on with.
  WcStatus fault_of(const rocemu_send_wqe& wqe, std::initializer_list<rocemu_sge> sges = {}) {
    post(wqe, sges);
    SendWork work;
    REQUIRE(queues->send().pop(work));
    CHECK(work.wr_id == wqe.wr_id);
    queues->send().release(1);
    return work.fault;
  }

  QpLayout layout;
  std::byte* memory = nullptr;
  std::unique_ptr<SharedWorkQueues> queues;
};

rocemu_send_wqe wqe_of(uint8_t opcode, uint16_t num_sge) {
  rocemu_send_wqe wqe{};
  wqe.wr_id = 42;
  wqe.opcode = opcode;
  wqe.num_sge = num_sge;
  return wqe;
}

}  // namespace

TEST_CASE("the layout holds what was asked for, in aligned slots that do not overlap") {
  const uint32_t sges = GENERATE(0u, 1u, 3u, 32u);
  const uint32_t inline_data = GENERATE(0u, 1u, 64u, 1024u);
  const QpLayout layout = lay_out_qp({}, Program::spec(100, sges, inline_data));
  CHECK(layout.send.entries == 128);
  CHECK(layout.send.stride_bytes % 64 == 0);
  CHECK(layout.send.stride_bytes >= sizeof(rocemu_send_wqe) + layout.max_inline_data);
  CHECK(layout.send.stride_bytes >= sizeof(rocemu_send_wqe) + 16 * layout.send.max_sge);
  CHECK(layout.receive.stride_bytes >= sizeof(rocemu_recv_wqe) + 16 * layout.receive.max_sge);
  CHECK(layout.send.max_sge >= sges);
  CHECK(layout.receive.max_sge >= sges);
  CHECK(layout.max_inline_data >= inline_data);
  CHECK(layout.send.offset_bytes >= sizeof(rocemu_queue_header));
  CHECK(layout.receive.offset_bytes >= layout.send.offset_bytes + layout.send.size_bytes());
  CHECK(layout.memory_bytes >= layout.receive.offset_bytes + layout.receive.size_bytes());
}

TEST_CASE("a device that grants exactly what was asked for grants no more, in the same rings") {
  device::DeviceLimits exact;
  exact.grants_exactly = true;
  const QpLayout usual = lay_out_qp({}, Program::spec(100, 3, 70));
  const QpLayout layout = lay_out_qp(exact, Program::spec(100, 3, 70));
  CHECK(usual.send.granted == 128);
  CHECK(layout.send.granted == 100);
  CHECK(layout.receive.granted == 100);
  CHECK(layout.send.max_sge == 3);
  CHECK(layout.receive.max_sge == 3);
  CHECK(layout.max_inline_data == 70);
  CHECK(layout.send.entries == usual.send.entries);
  CHECK(layout.memory_bytes == usual.memory_bytes);
  CHECK(lay_out_qp(exact, Program::spec(0, 0, 0)).send.granted == 0);

  device::SrqSpec srq;
  srq.max_wr = 5;
  srq.max_sge = 1;
  CHECK(lay_out_srq(exact, srq).ring.granted == 5);
  CHECK(lay_out_srq({}, srq).ring.granted == 8);
  CHECK(cq_entries(exact, 5) == 5);
  CHECK(cq_entries({}, 5) == 8);
  CHECK(cq_memory_bytes(5) == cq_memory_bytes(8));
}

TEST_CASE("a posted request arrives as it was written, empty elements left out") {
  Program program;
  rocemu_send_wqe wqe = wqe_of(kWrWrite, 2);
  wqe.flags = ROCEMU_SEND_SIGNALED | ROCEMU_SEND_FENCE;
  wqe.remote_address = 0x1122334455667788;
  wqe.rkey = 0xabcd;
  program.post(wqe, {{0x1000, 0, 7}, {0x2000, 300, 8}});

  SendWork work;
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.opcode == WorkOpcode::write);
  CHECK(work.fault == WcStatus::success);
  CHECK(work.signaled);
  CHECK(work.fence);
  CHECK_FALSE(work.solicited);
  CHECK(work.remote_address == 0x1122334455667788);
  CHECK(work.rkey.value == 0xabcd);
  CHECK(work.length_bytes == 300);
  REQUIRE(work.sges.view().size() == 1);
  CHECK(work.sges.view()[0].address == 0x2000);
  CHECK(work.sges.view()[0].lkey.value == 8);
  CHECK_FALSE(program.queues->send().pop(work));

  CHECK(program.header().sq_consumer == 0);
  program.queues->send().release(1);
  CHECK(program.header().sq_consumer == 1);
}

TEST_CASE("inline payload is handed on in place") {
  Program program;
  rocemu_send_wqe wqe = wqe_of(kWrSend, 0);
  wqe.flags = ROCEMU_SEND_INLINE;
  wqe.inline_bytes = 64;
  program.post(wqe);
  SendWork work;
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);
  CHECK(work.inline_payload == program.send_slot(0) + sizeof(rocemu_send_wqe));
  CHECK(work.length_bytes == 64);
}

TEST_CASE("inline WQE data is handed on beside its element") {
  Program program;
  rocemu_send_wqe wqe = wqe_of(GENERATE(kWrSend, kWrWrite), 1);
  wqe.flags = ROCEMU_SEND_INLINE_WQE_DATA;
  const uint32_t bytes = GENERATE(1u, uint32_t{ROCEMU_INLINE_WQE_DATA_MAX});
  program.post(wqe, {{0x1000, bytes, 7}});
  SendWork work;
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);
  CHECK(work.inline_payload == nullptr);
  CHECK(work.inline_wqe_data == program.send_slot(0) + offsetof(rocemu_send_wqe, compare_add));
  CHECK(work.length_bytes == bytes);
  CHECK(work.sges.view().size() == 1);
}

TEST_CASE("payload that cannot be what its elements name is not taken") {
  const auto taken = [](uint8_t opcode, std::initializer_list<rocemu_sge> sges) {
    Program program;
    rocemu_send_wqe wqe = wqe_of(opcode, static_cast<uint16_t>(sges.size()));
    wqe.flags = ROCEMU_SEND_INLINE_WQE_DATA;
    program.post(wqe, sges);
    SendWork work;
    REQUIRE(program.queues->send().pop(work));
    REQUIRE(work.fault == WcStatus::success);
    return work.inline_wqe_data != nullptr;
  };
  CHECK(taken(kWrSend, {{0x1000, 8, 7}}));
  CHECK_FALSE(taken(kWrSend, {{0x1000, ROCEMU_INLINE_WQE_DATA_MAX + 1, 7}}));
  CHECK_FALSE(taken(kWrSend, {{0x1000, 8, 7}, {0x2000, 8, 7}}));
  CHECK_FALSE(taken(kWrSend, {{0x1000, 0, 7}}));
  CHECK_FALSE(taken(kWrRead, {{0x1000, 8, 7}}));
  CHECK_FALSE(taken(kWrFetchAdd, {{0x1000, 8, 7}}));
  CHECK_FALSE(taken(kWrAtomicWrite, {{0x1000, 8, 7}}));
}

TEST_CASE("a binding and the keys to invalidate are where the contract has them") {
  Program program;
  SendWork work;
  rocemu_send_wqe wqe = wqe_of(kWrBindMw, 0);
  wqe.rkey = 0x501;
  wqe.imm_or_rkey = 0x700;
  wqe.remote_address = 0x1000;
  wqe.compare_add = uint64_t{1} << 33;
  wqe.swap = 6;
  program.post(wqe);
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);
  CHECK(work.binding.window.value == 0x501);
  CHECK(work.binding.region.value == 0x700);
  CHECK(work.binding.address == 0x1000);
  CHECK(work.binding.length_bytes == uint64_t{1} << 33);
  CHECK(work.binding.access == 6);

  wqe.swap = uint64_t{6} << 32;
  program.post(wqe);
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.binding.access == UINT32_MAX);

  const uint8_t opcode = GENERATE(kWrLocalInv, kWrSendInv);
  program.post(wqe_of(opcode, 0));
  wqe = wqe_of(opcode, 0);
  wqe.imm_or_rkey = 0x502;
  program.post(wqe);
  REQUIRE(program.queues->send().pop(work));
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.rkey.value == 0x502);
}

TEST_CASE("malformed requests complete with the status that names the mistake") {
  Program program;
  const auto most = static_cast<uint16_t>(program.layout.send.max_sge);

  CHECK(program.fault_of(wqe_of(kWrTso, 0)) == WcStatus::local_qp_operation_error);
  rocemu_send_wqe inline_binding = wqe_of(kWrBindMw, 0);
  inline_binding.flags = ROCEMU_SEND_INLINE;
  CHECK(program.fault_of(inline_binding) == WcStatus::local_qp_operation_error);
  CHECK(program.fault_of(wqe_of(0xff, 0)) == WcStatus::local_qp_operation_error);
  CHECK(program.fault_of(wqe_of(kWrSend, static_cast<uint16_t>(most + 1))) ==
        WcStatus::local_qp_operation_error);
  CHECK(program.fault_of(wqe_of(kWrSend, 0xffff)) == WcStatus::local_qp_operation_error);

  rocemu_send_wqe too_much_inline = wqe_of(kWrSend, 0);
  too_much_inline.flags = ROCEMU_SEND_INLINE;
  too_much_inline.inline_bytes = program.layout.max_inline_data + 1;
  CHECK(program.fault_of(too_much_inline) == WcStatus::local_qp_operation_error);
  too_much_inline.inline_bytes = std::numeric_limits<uint32_t>::max();
  CHECK(program.fault_of(too_much_inline) == WcStatus::local_qp_operation_error);

  rocemu_send_wqe inline_read = wqe_of(kWrRead, 0);
  inline_read.flags = ROCEMU_SEND_INLINE;
  CHECK(program.fault_of(inline_read) == WcStatus::local_qp_operation_error);

  CHECK(program.fault_of(wqe_of(kWrSend, 2), {{0, kMaxMessage, 1}, {0, 1, 1}}) ==
        WcStatus::local_length_error);
  CHECK(program.fault_of(wqe_of(kWrSend, 2), {{0, 0xffffffff, 1}, {0, 0xffffffff, 1}}) ==
        WcStatus::local_length_error);
  CHECK(program.fault_of(wqe_of(kWrFetchAdd, 1), {{0, 4, 1}}) == WcStatus::local_length_error);
  CHECK(program.fault_of(wqe_of(kWrFetchAdd, 1), {{0, 8, 1}}) == WcStatus::success);
  CHECK(program.fault_of(wqe_of(kWrSend, 1), {{0, kMaxMessage, 1}}) == WcStatus::success);

  CHECK(program.fault_of(wqe_of(kWrAtomicWrite, 1), {{0, 4, 1}}) == WcStatus::local_length_error);
  CHECK(program.fault_of(wqe_of(kWrAtomicWrite, 1), {{0, 8, 1}}) == WcStatus::success);
  rocemu_send_wqe inline_write = wqe_of(kWrAtomicWrite, 0);
  inline_write.flags = ROCEMU_SEND_INLINE;
  inline_write.inline_bytes = 4;
  CHECK(program.fault_of(inline_write) == WcStatus::local_length_error);
  inline_write.inline_bytes = 9;
  CHECK(program.fault_of(inline_write) == WcStatus::local_qp_operation_error);
}

TEST_CASE("The headers of a TSO request stay within its entry, whatever a program says") {
  for (const uint32_t sges : {1u, 3u, 16u}) {
    Program program(8, sges, 64, 100);
    const RingLayout& ring = program.layout.send;
    const uint32_t headers_at =
        static_cast<uint32_t>(sizeof(rocemu_send_wqe) + ring.max_sge * sizeof(rocemu_sge));
    CHECK(ring.max_sge >= sges);
    CHECK(headers_at + 100 <= ring.stride_bytes);

    rocemu_send_wqe wqe = wqe_of(kWrTso, 1);
    wqe.inline_bytes = 100;
    wqe.rkey = 1448;
    program.post(wqe, {{0x1000, 5000, 7}});
    SendWork work;
    REQUIRE(program.queues->send().pop(work));
    CHECK(work.fault == WcStatus::success);
    CHECK(work.opcode == WorkOpcode::tso);
    CHECK(work.length_bytes == 5000);
    CHECK(work.segmentation.headers.data() == program.send_slot(0) + headers_at);
    CHECK(work.segmentation.headers.size() == 100);
    CHECK(work.segmentation.payload_bytes == 1448);

    wqe.inline_bytes = 101;
    CHECK(program.fault_of(wqe, {{0x1000, 5000, 7}}) == WcStatus::local_qp_operation_error);
    wqe.inline_bytes = 54;
    wqe.flags = ROCEMU_SEND_INLINE;
    CHECK(program.fault_of(wqe) == WcStatus::local_qp_operation_error);
  }
}

TEST_CASE(
    "an inline atomic write has its data in the entry itself, also where there is no inline") {
  Program program(4, 0, 0);
  rocemu_send_wqe wqe = wqe_of(kWrAtomicWrite, 0);
  wqe.flags = ROCEMU_SEND_INLINE;
  wqe.inline_bytes = 8;
  wqe.compare_add = 0x1122334455667788;
  program.post(wqe);
  SendWork work;
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);
  CHECK(work.opcode == WorkOpcode::atomic_write);
  CHECK(work.length_bytes == 8);
  REQUIRE(work.inline_payload != nullptr);
  CHECK(std::memcmp(work.inline_payload, &wqe.compare_add, 8) == 0);
}

TEST_CASE("a flush has no payload, whatever stands behind its entry") {
  Program program(4, 1, 64);
  rocemu_send_wqe wqe = wqe_of(kWrFlush, 1);
  wqe.compare_add = 4096;
  wqe.swap = 1 | 1 << 8;
  program.post(wqe, {{0x1000, 100, 7}});
  SendWork work;
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);
  CHECK(work.opcode == WorkOpcode::flush);
  CHECK(work.length_bytes == 0);
  CHECK(work.flush_bytes == 4096);
  CHECK(work.feth.placement == 1);
  CHECK(work.feth.selectivity == 1);

  wqe.flags = ROCEMU_SEND_INLINE;
  wqe.inline_bytes = 8;
  CHECK(program.fault_of(wqe) == WcStatus::local_qp_operation_error);
}

namespace {

// Both sides of one SRQ's memory.
struct SharedReceives {
  explicit SharedReceives(uint32_t max_wr, uint32_t max_sge = 1)
      : layout(lay_out_srq({}, {.max_wr = max_wr, .max_sge = max_sge})) {
    SharedMemory shared("test", layout.memory_bytes);
    memory = shared.data();
    ring = std::make_unique<SharedReceiveRing>(std::move(shared), layout.ring);
  }
  rocemu_queue_header& header() { return *reinterpret_cast<rocemu_queue_header*>(memory); }
  void post(uint64_t wr_id) {
    rocemu_recv_wqe wqe{};
    wqe.wr_id = wr_id;
    std::memcpy(
        memory + layout.ring.offset_bytes +
            size_t{header().rq_producer & (layout.ring.entries - 1)} * layout.ring.stride_bytes,
        &wqe, sizeof(wqe));
    ++header().rq_producer;
  }
  uint64_t pop() {
    transport::ReceiveWork work;
    REQUIRE(ring->pop(work));
    return work.wr_id;
  }

  SrqLayout layout;
  std::byte* memory = nullptr;
  std::unique_ptr<SharedReceiveRing> ring;
};

}  // namespace

TEST_CASE("a receive ring that takes over holds what was not taken, in order") {
  SharedReceives old(4);
  for (uint64_t id : {1, 2, 3, 4}) old.post(id);
  CHECK(old.pop() == 1);
  CHECK(old.pop() == 2);
  old.post(5);  // round the end of the ring

  SharedReceives small(2);
  CHECK_FALSE(small.ring->take_over(*old.ring));
  CHECK(small.header().rq_producer == 0);
  SharedReceives large(8);
  REQUIRE(large.ring->take_over(*old.ring));
  CHECK(large.header().rq_producer == 3);
  CHECK(large.header().rq_consumer == 0);
  CHECK(large.ring->waiting() == 3);
  large.post(6);
  for (uint64_t id : {3, 4, 5, 6}) CHECK(large.pop() == id);
  CHECK(large.header().rq_consumer == 4);

  // A producer index that never was possible gives no more than the ring holds.
  old.header().rq_producer = 0x80000000;
  SharedReceives other(4);
  CHECK(other.ring->take_over(*old.ring));
  CHECK(other.ring->waiting() == 4);
}

TEST_CASE(
    "a receive ring that is taken over in parts loses nothing of what is not taken meanwhile") {
  constexpr uint32_t kCount = 4096;
  SharedReceives old(kCount), small(kCount / 4), large(kCount * 2);
  for (uint64_t id = 0; id < kCount; ++id) old.post(id);
  uint64_t next = 0;
  CHECK(small.ring->prepare_to_take_over(*old.ring));
  CHECK_FALSE(small.ring->take_over(*old.ring));

  unsigned parts = 0;
  for (; !large.ring->prepare_to_take_over(*old.ring); ++parts) {
    // Now less than what has been copied, and once more.
    for (int i = 0; i < (parts == 1 ? 1500 : 3); ++i) CHECK(old.pop() == next++);
  }
  CHECK(parts > 3);
  CHECK(old.pop() == next++);
  REQUIRE(large.ring->take_over(*old.ring));
  CHECK(large.ring->waiting() == kCount - next);
  CHECK(large.header().rq_consumer == next);
  for (; next < kCount; ++next) REQUIRE(large.pop() == next);
  CHECK(large.ring->waiting() == 0);
  large.post(kCount);
  CHECK(large.pop() == kCount);
}

TEST_CASE("an impossible producer index is one fault, and the queue is then empty") {
  Program program;
  program.post(wqe_of(kWrSend, 0));
  program.post(wqe_of(kWrSend, 0));
  SendWork work;
  REQUIRE(program.queues->send().pop(work));
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);

  // More than the ring holds, with two requests that have not been released; or backwards.
  program.header().sq_producer = GENERATE(2u + 7u, 1u, 0u, 0x80000000u, 0xffffffffu);
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::local_qp_operation_error);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(program.queues->send().pop(work));

  program.queues->send().release(3);
  program.queues->reset();
  CHECK(program.header().sq_consumer == program.header().sq_producer);
  CHECK_FALSE(program.queues->send().pop(work));
  program.post(wqe_of(kWrSend, 0));
  REQUIRE(program.queues->send().pop(work));
  CHECK(work.fault == WcStatus::success);
}

TEST_CASE("a full ring is served whole, also where the indices wrap") {
  Program program(4);
  SendWork work;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) program.post(wqe_of(kWrSend, 0));
    for (int i = 0; i < 4; ++i) {
      REQUIRE(program.queues->send().pop(work));
      CHECK(work.fault == WcStatus::success);
    }
    CHECK_FALSE(program.queues->send().pop(work));
    program.queues->send().release(4);
  }
}

TEST_CASE("receives are checked in the same way and leave the ring when they are taken") {
  Program program;
  program.post(rocemu_recv_wqe{7, 2, 0}, {{0x1000, 10, 1}, {0x2000, 20, 2}});
  program.post(rocemu_recv_wqe{8, 0xffffffff, 0});
  program.post(rocemu_recv_wqe{9, 2, 0}, {{0, 0xffffffff, 1}, {0, 0xffffffff, 1}});

  ReceiveWork work;
  REQUIRE(program.queues->receive().pop(work));
  CHECK(work.wr_id == 7);
  CHECK(work.fault == WcStatus::success);
  CHECK(work.length_bytes == 30);
  CHECK(work.sges.view().size() == 2);
  CHECK(program.header().rq_consumer == 1);

  REQUIRE(program.queues->receive().pop(work));
  CHECK(work.wr_id == 8);
  CHECK(work.fault == WcStatus::local_qp_operation_error);
  REQUIRE(program.queues->receive().pop(work));
  CHECK(work.fault == WcStatus::local_length_error);
  CHECK(work.sges.view().empty());

  program.header().rq_producer += 100;
  REQUIRE(program.queues->receive().pop(work));
  CHECK(work.fault == WcStatus::local_qp_operation_error);
  CHECK_FALSE(program.queues->receive().pop(work));
}

TEST_CASE("queues without entries are empty whatever the index says") {
  Program program(0, 0, 0);
  program.header().sq_producer = 5;
  program.header().rq_producer = 5;
  SendWork send;
  ReceiveWork receive;
  CHECK_FALSE(program.queues->send().pop(send));
  CHECK_FALSE(program.queues->receive().pop(receive));
}

TEST_CASE("the program sees the state of its QP") {
  Program program;
  program.queues->show_state(transport::QpState::error);
  CHECK(program.header().qp_state == 6);
}

}  // namespace rocemu::daemon
