// What runs on the switch have lent is taken before its program has it back: on demand, and before
// a failed request is shown.
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "dpdk_io/port/lent_payload.h"
#include "dpdk_io/port/run_mark.h"
#include "emulator/daemon/engine/engine_devices.h"
#include "tests/unit/daemon/nic_fixture.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kEthernetBytes = 14;
constexpr unsigned kDevices = 2;
constexpr uint8_t kIdlePort = kDevices;  // no device receives what comes to it

bool copy(std::byte* to, const std::byte* lent, size_t length_bytes) noexcept {
  std::copy_n(lent, length_bytes, to);
  return true;
}

// A program's queues, with what it has posted.
struct Queues final : device::WorkQueues, transport::SendQueue, transport::ReceiveQueue {
  std::optional<transport::SendWork> posted;
  bool pop(transport::SendWork& work) noexcept override {
    if (!posted) return false;
    work = *std::exchange(posted, std::nullopt);
    return true;
  }
  void release(uint32_t) noexcept override {}
  bool pop(transport::ReceiveWork&) noexcept override { return false; }
  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  void show_state(transport::QpState) noexcept override {}
  void reset() noexcept override {}
};

// A CQ's ring, whose program has its memory back by what it is shown, and fills it at once.
struct Ring final : device::CompletionRing {
  explicit Ring(std::span<std::byte> memory) : memory_of_program(memory) {}
  bool push(const transport::Completion& completion) noexcept override {
    failures += completion.status != transport::WcStatus::success;
    return true;
  }
  bool show() noexcept override {
    if (failures != 0) std::ranges::fill(memory_of_program, std::byte{0x66});
    return false;
  }
  bool take_arm() noexcept override { return false; }
  bool take_over(CompletionRing&) noexcept override { return false; }
  std::span<std::byte> memory_of_program;
  unsigned failures = 0;
};

struct NoEvents final : device::EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

struct Lending {
  Lending() {
    fabric.let_icrc_wait([](std::span<std::byte>) {});
    fabric.let_runs_pass(nic.pool());
    for (uint8_t i = 0; i <= kIdlePort; ++i)
      ports[i] = &fabric.add_port({2, 0, 0, 0, 0, i}, "port");
    for (uint32_t i = 0; i < kDevices; ++i)
      devices.add(std::make_unique<device::Hca>(device::default_config(i),
                                                transport::TransportLimits{}, gids),
                  *ports[i], true);
    memory.fill(std::byte{0x55});
  }

  // A run from the first port to the idle one, which lends `memory`.
  void send_run() {
    rte_mbuf* run = nic.pool().allocate();
    auto* const bytes =
        reinterpret_cast<std::byte*>(rte_pktmbuf_append(run, kEthernetBytes + memory.size()));
    std::fill_n(bytes, kEthernetBytes + memory.size(), std::byte{0});
    bytes[0] = std::byte{2};
    bytes[5] = std::byte{kIdlePort};
    dpdk_io::mark_run(run, {2, 16, 100});
    dpdk_io::mark_lent(run, {memory.data(), static_cast<uint32_t>(memory.size()), kEthernetBytes});
    REQUIRE(ports[0]->transmit(1000, {&run, 1}) == 1);
  }

  // The run arrives with the bytes that `memory` had when it was sent.
  void check_arrival() {
    rte_mbuf* received = nullptr;
    REQUIRE(ports[kIdlePort]->receive(1000, {&received, 1}) == 1);
    CHECK(dpdk_io::lent_payload(received) == nullptr);
    const std::byte* const payload = rte_pktmbuf_mtod_offset(received, std::byte*, kEthernetBytes);
    CHECK(std::all_of(payload, payload + memory.size(),
                      [](std::byte b) { return b == std::byte{0x55}; }));
    dpdk_io::FramePool::free(received);
  }

  // A request of a program fails, of which `ring` is shown with the device's next turn.
  Ring& fail_request(device::Hca& hca) {
    const auto context =
        hca.open_context(dma::AddressSpace::local(memory, 0x10000), std::make_unique<NoEvents>())
            .value();
    auto own_ring = std::make_unique<Ring>(memory);
    Ring& ring = *own_ring;
    auto own_queues = std::make_unique<Queues>();
    Queues& queues = *own_queues;
    device::QpSpec spec;
    spec.pd = hca.alloc_pd(context).value();
    spec.send_cq = spec.receive_cq =
        hca.create_cq(context, {.cqe = 16}, std::move(own_ring)).value();
    spec.type = 2;
    spec.max_send_wr = spec.max_recv_wr = 8;
    spec.max_send_sge = spec.max_recv_sge = 1;
    const auto created = hca.create_qp(context, spec, std::move(own_queues)).value();
    device::QpAttr error;
    error.qp_state = 6;
    REQUIRE(hca.modify_qp(context, created.qp, device::kState, error));
    queues.posted = transport::SendWork{};
    hca.endpoint().on_doorbell(created.qpn);
    return ring;
  }

  NicFixture nic;
  GidDirectory gids;
  dpdk_io::Switch fabric{nic.pool()};
  EngineDevices devices{nic.pool()};
  std::array<dpdk_io::Port*, kDevices + 1> ports{};
  std::array<std::byte, 32> memory;
};

}  // namespace

TEST_CASE_METHOD(Lending, "what runs on the switch have lent is taken when it has to be") {
  devices.take_lent();  // nothing is lent yet
  devices.let_payload_be_lent(fabric, copy);
  CHECK(ports[0]->takes_lent());
  send_run();
  devices.take_lent();
  memory.fill(std::byte{0x66});
  check_arrival();
}

TEST_CASE_METHOD(Lending, "what is lent is taken before a failed request is shown to its program") {
  const bool together = GENERATE(false, true);
  if (together) devices.set_parallel(ParallelMode::always, 2, fabric);
  devices.let_payload_be_lent(fabric, copy);
  send_run();
  Ring& ring = fail_request(devices.at(GENERATE(0u, 1u)).hca());
  devices.turn(2000);
  REQUIRE(ring.failures == 1);
  CHECK(memory[0] == std::byte{0x66});
  CHECK((devices.parallel_stats().parallel_turns != 0) == together);
  check_arrival();
}

}  // namespace rocemu::daemon
