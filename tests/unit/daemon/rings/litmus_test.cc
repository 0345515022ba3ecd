// The orders in which a program and the NIC see each other's stores to the memory they share, by
// the code of both, with a thread for either. Of two kinds, as in the memory models' literature:
// - message passing: who sees an index sees what was written before it;
// - store buffering: each side writes one word and then reads the other's, and one of the two sees
//   what the other wrote, or both would wait for ever.
// On x86 a missing fence shows in the second kind alone. On a weakly ordered processor it shows in
// both, and ThreadSanitizer finds those of the first kind on any.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <span>
#include <thread>

#include "base/cpu_relax.h"
#include "emulator/daemon/engine/engine_page.h"
#include "emulator/daemon/rings/doorbells.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "emulator/daemon/rings/shared_work_queues.h"
#include "verbs_shim/provider/rings/completion_ring.h"
#include "verbs_shim/provider/rings/doorbell.h"
#include "verbs_shim/provider/rings/work_ring.h"

namespace rocemu::daemon {
namespace {

constexpr uint32_t kEntries = 4;  // few, so that either side often finds its ring full or empty
constexpr uint64_t kMessages = 20'000;
constexpr uint32_t kRounds = 10'000;

// One more look is due. The other thread may be on this core.
void look_again(unsigned& looks) {
  if (++looks % 64 == 0) {
    std::this_thread::yield();
  } else {
    cpu_relax();
  }
}

// Lets two threads begin a round at the same time, as near as can be.
class Gate {
 public:
  void pass() {
    const uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == 1) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (unsigned looks = 0; round_.load(std::memory_order_acquire) == round;) look_again(looks);
  }

 private:
  std::atomic<uint32_t> arrived_{0};
  std::atomic<uint32_t> round_{0};
};

struct Qp {
  Qp() : layout(lay_out_qp({}, spec())) {
    SharedMemory shared("test", layout.memory_bytes);
    std::byte* const memory = shared.data();
    header = reinterpret_cast<rocemu_queue_header*>(memory);
    const auto slots = [memory](const RingLayout& ring) {
      return reinterpret_cast<uint8_t*>(memory + ring.offset_bytes);
    };
    send.attach(&header->sq_producer, &header->sq_consumer, slots(layout.send), layout.send.granted,
                layout.send.stride_bytes);
    receive.attach(&header->rq_producer, &header->rq_consumer, slots(layout.receive),
                   layout.receive.granted, layout.receive.stride_bytes);
    nic = std::make_unique<SharedWorkQueues>(std::move(shared), layout, 1u << 30);
  }
  static device::QpSpec spec() {
    device::QpSpec spec;
    spec.max_send_wr = spec.max_recv_wr = kEntries;
    spec.max_send_sge = spec.max_recv_sge = 1;
    return spec;
  }

  QpLayout layout;
  rocemu_queue_header* header = nullptr;
  provider::WorkRing send, receive;  // the program's side
  std::unique_ptr<SharedWorkQueues> nic;
};

struct Cq {
  Cq() {
    SharedMemory shared("test", cq_memory_bytes(kEntries));
    program.attach(shared.data(), kEntries);
    nic = std::make_unique<SharedCompletionRing>(std::move(shared), kEntries, host);
  }

  CompletionHost host{[] { return TimeNs{123}; }};
  provider::CompletionRing program;
  std::unique_ptr<SharedCompletionRing> nic;
};

}  // namespace

TEST_CASE("the NIC that sees a request's index sees the request") {
  Qp qp;
  std::thread program([&] {
    unsigned looks = 0;
    for (uint64_t i = 0; i < kMessages; ++i) {
      uint8_t* slot;
      while ((slot = qp.send.claim()) == nullptr) look_again(looks);
      rocemu_send_wqe wqe = {};
      wqe.wr_id = i;
      wqe.opcode = 0;  // IBV_WR_RDMA_WRITE
      wqe.num_sge = 1;
      wqe.remote_address = ~i;
      const rocemu_sge sge = {i, static_cast<uint32_t>(i % 1000 + 1), 1};
      std::memcpy(slot, &wqe, sizeof(wqe));
      std::memcpy(slot + sizeof(wqe), &sge, sizeof(sge));
      qp.send.publish();
    }
  });
  uint64_t wrong = 0;
  unsigned looks = 0;
  for (uint64_t i = 0; i < kMessages; ++i) {
    transport::SendWork work;
    while (!qp.nic->send().pop(work)) look_again(looks);
    const std::span<const transport::Sge> sges = work.sges.view();
    wrong += work.wr_id != i || work.remote_address != ~i || sges.size() != 1 ||
             sges[0].address != i || sges[0].length_bytes != i % 1000 + 1;
    qp.nic->send().release(1);
  }
  program.join();
  CHECK(wrong == 0);
}

TEST_CASE("the program that sees a completion's index sees the completion, and what came before") {
  Cq cq;
  std::array<uint64_t, kEntries> payload = {};  // as the NIC's, written before its completion
  std::thread nic([&] {
    unsigned looks = 0;
    for (uint64_t i = 0; i < kMessages; ++i) {
      while (cq.nic->unread() == kEntries) look_again(looks);
      payload[i % kEntries] = i;
      transport::Completion completion;
      completion.wr_id = i;
      completion.byte_length = static_cast<uint32_t>(~i);
      cq.nic->push(completion);
      cq.nic->show();
    }
  });
  uint64_t wrong = 0;
  unsigned looks = 0;
  for (uint64_t i = 0; i < kMessages; ++i) {
    const rocemu_cqe* cqe;
    while ((cqe = cq.program.take()) == nullptr) look_again(looks);
    wrong += cqe->wr_id != i || cqe->byte_length != static_cast<uint32_t>(~i) ||
             cqe->timestamp_ns != 123 || payload[i % kEntries] != i;
    cq.program.give_back();
  }
  nic.join();
  CHECK(wrong == 0);
}

TEST_CASE("a program that arms and then finds nothing gets an event") {
  Cq cq;
  Gate gate;
  bool event = false;
  std::thread nic([&] {
    for (uint32_t round = 0; round < kRounds; ++round) {
      gate.pass();
      cq.nic->push({});
      event = cq.nic->show() && cq.nic->take_arm();
      gate.pass();
    }
  });
  uint32_t missed = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    gate.pass();
    cq.program.arm(ROCEMU_CQ_ARM_NEXT);
    const bool found = !cq.program.looks_empty();
    gate.pass();
    missed += !found && !event;
    cq.nic->take_arm();
    cq.program.take();
    cq.program.give_back();
  }
  nic.join();
  CHECK(missed == 0);
}

TEST_CASE("a doorbell is seen by the engine's last look, or the program sees that it sleeps") {
  constexpr uint32_t kSlot = 5;
  SharedMemory shared("test", sizeof(rocemu_doorbell_page));
  EnginePage engine;
  void* const page =
      ::mmap(nullptr, sizeof(rocemu_engine_page), PROT_READ, MAP_SHARED, engine.fd(), 0);
  REQUIRE(page != MAP_FAILED);
  const provider::Doorbells program{reinterpret_cast<rocemu_doorbell_page*>(shared.data()),
                                    static_cast<const rocemu_engine_page*>(page), -1, 64};
  Doorbells nic(std::move(shared), 64);
  for (uint32_t slot = 0; slot <= kSlot; ++slot) REQUIRE(nic.allocate(wire::Qpn{slot + 1}) == slot);

  Qp qp;
  Gate gate;
  bool rung = false;
  bool seen_request = true;
  std::thread thread([&] {
    for (uint32_t round = 0; round < kRounds; ++round) {
      gate.pass();
      engine.show_sleeping();
      rung = nic.any_rung();
      transport::SendWork work;
      // Who sees the doorbell sees the request that it was rung for.
      if (nic.scan(UINT32_MAX, [](wire::Qpn) {})) seen_request = qp.nic->send().waiting() == 1;
      gate.pass();
      engine.show_awake();
      nic.scan(UINT32_MAX, [](wire::Qpn) {});
      while (qp.nic->send().pop(work)) qp.nic->send().release(1);
      gate.pass();
    }
  });
  uint32_t missed = 0, request_missed = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    uint8_t* const slot = qp.send.claim();
    if (slot != nullptr) std::memset(slot, 0, sizeof(rocemu_send_wqe));
    gate.pass();
    qp.send.publish();
    const bool sleeps = program.ring(kSlot) != 0;
    gate.pass();
    missed += !sleeps && !rung;
    request_missed += slot == nullptr || !seen_request;
    gate.pass();
  }
  thread.join();
  ::munmap(page, sizeof(rocemu_engine_page));
  CHECK(missed == 0);
  CHECK(request_missed == 0);
}

TEST_CASE("a receive that is posted while its QP fails is flushed by one of both sides") {
  Qp qp;
  Gate gate;
  bool seen = false;
  std::thread nic([&] {
    for (uint32_t round = 0; round < kRounds; ++round) {
      qp.nic->show_state(transport::QpState::ready_to_send);
      gate.pass();
      qp.nic->show_state(transport::QpState::error);
      transport::ReceiveWork work;
      seen = qp.nic->receive().pop(work);
      gate.pass();
      if (!seen) qp.nic->receive().pop(work);
      gate.pass();
    }
  });
  uint32_t missed = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    uint8_t* const slot = qp.receive.claim();
    if (slot != nullptr) std::memset(slot, 0, sizeof(rocemu_recv_wqe));
    gate.pass();
    qp.receive.publish();
    provider::full_fence();
    const bool failed = provider::load_relaxed(&qp.header->qp_state) ==
                        static_cast<uint32_t>(transport::QpState::error);
    gate.pass();
    missed += slot == nullptr || (!failed && !seen);
    gate.pass();
  }
  nic.join();
  CHECK(missed == 0);
}

}  // namespace rocemu::daemon
