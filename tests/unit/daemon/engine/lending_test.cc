// What runs under way have lent is taken before its program has it back: on demand, on the switch
// and in front of a port that takes no more, and before a failed request is shown.
#include <rte_mbuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dpdk_io/port/lent_payload.h"
#include "dpdk_io/port/run_mark.h"
#include "emulator/daemon/engine/engine_devices.h"
#include "emulator/dma/guarded_access.h"
#include "emulator/dma/mapped_file.h"
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
    ++pushed;
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
  unsigned pushed = 0;
  unsigned failures = 0;
};

struct NoEvents final : device::EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

// A program that has opened `hca`, with a QP.
struct Lender {
  static constexpr uint64_t kBase = 0x10000;
  static constexpr uint32_t kAccess = 7;  // local write, remote write and read

  Lender(device::Hca& device, std::span<std::byte> memory) : hca(device) {
    context =
        hca.open_context(dma::AddressSpace::local(memory, kBase), std::make_unique<NoEvents>())
            .value();
    auto own_ring = std::make_unique<Ring>(memory);
    ring = own_ring.get();
    auto own_queues = std::make_unique<Queues>();
    queues = own_queues.get();
    spec.pd = hca.alloc_pd(context).value();
    spec.send_cq = spec.receive_cq =
        hca.create_cq(context, {.cqe = 16}, std::move(own_ring)).value();
    spec.type = 2;
    spec.max_send_wr = spec.max_recv_wr = 8;
    spec.max_send_sge = spec.max_recv_sge = 1;
    qp = hca.create_qp(context, spec, std::move(own_queues)).value();
  }

  void connect(const wire::Gid& peer, wire::Qpn peer_qpn = wire::Qpn{0x11}) const {
    using namespace device;
    QpAttr attr;
    attr.port_num = attr.ah.port_num = 1;
    attr.qp_access_flags = kAccess;
    attr.path_mtu = 3;
    attr.ah.is_global = true;
    attr.ah.sgid_index = 1;
    attr.ah.dgid = peer;
    attr.dest_qp_num = peer_qpn.value;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
    attr.qp_state = 1;
    REQUIRE(hca.modify_qp(context, qp.qp, kState | kPkeyIndex | kPort | kAccessFlags, attr));
    attr.qp_state = 2;
    REQUIRE(hca.modify_qp(
        context, qp.qp,
        kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer, attr));
    attr.qp_state = 3;
    REQUIRE(hca.modify_qp(context, qp.qp,
                          kState | kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxQpRdAtomic,
                          attr));
  }

  device::MrKeys reg_mr(const std::shared_ptr<const dma::MappedFile>& file) const {
    device::MrSpec region{spec.pd, kAccess, kBase, file->bytes().size(), kBase};
    region.file = file;
    return hca.reg_mr(context, region).value();
  }

  void post(transport::SendWork work, wire::LKey lkey, uint32_t length_bytes) const {
    const transport::Sge sge{kBase, length_bytes, lkey};
    work.length_bytes = length_bytes;
    work.sges.assign({&sge, 1});
    queues->posted = std::move(work);
    hca.endpoint().on_doorbell(qp.qpn);
  }

  device::Hca& hca;
  device::ContextId context = 0;
  device::QpSpec spec;
  device::CreatedQp qp;
  Ring* ring = nullptr;
  Queues* queues = nullptr;
};

// A port on which runs may lend, and that takes nothing until it is open: then it takes all of one
// run, whose bytes it keeps.
struct FullPort final : dpdk_io::Port {
  explicit FullPort(dpdk_io::FramePool& pool) : runs(pool) {}
  unsigned receive(uint64_t, std::span<rte_mbuf*>) noexcept override { return 0; }
  unsigned transmit(uint64_t, std::span<rte_mbuf*> burst) noexcept override {
    if (!open) {
      offered = static_cast<unsigned>(burst.size());
      return 0;
    }
    for (rte_mbuf* frame : burst) {
      lent += dpdk_io::lent_payload(frame) != nullptr;
      const std::span bytes(rte_pktmbuf_mtod(frame, const std::byte*), frame->data_len);
      sent.insert(sent.end(), bytes.begin(), bytes.end());
    }
    dpdk_io::FramePool::free_bulk(burst);
    return static_cast<unsigned>(burst.size());
  }
  int poll_fd() const noexcept override { return -1; }
  bool has_work() const noexcept override { return false; }
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  const dpdk_io::PortStats& stats() const noexcept override { return none; }
  bool takes_owed_icrc() const noexcept override { return true; }
  dpdk_io::FramePool* run_pool() const noexcept override { return &runs; }
  bool takes_lent() const noexcept override { return true; }

  dpdk_io::FramePool& runs;
  dpdk_io::PortStats none;
  bool open = false;
  unsigned offered = 0;
  unsigned lent = 0;
  std::vector<std::byte> sent;
};

std::shared_ptr<const dma::MappedFile> mapped_file(size_t length_bytes) {
  dma::install_access_guard();
  const UniqueFd file(::memfd_create("lent", MFD_CLOEXEC));
  REQUIRE(::ftruncate(file.get(), static_cast<off_t>(length_bytes)) == 0);
  auto mapped = dma::MappedFile::map(file.get(), 0, length_bytes);
  REQUIRE(mapped != nullptr);
  return mapped;
}

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
    const Lender lender(hca, memory);
    device::QpAttr error;
    error.qp_state = 6;
    REQUIRE(hca.modify_qp(lender.context, lender.qp.qp, device::kState, error));
    lender.queues->posted = transport::SendWork{};
    hca.endpoint().on_doorbell(lender.qp.qpn);
    return *lender.ring;
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
  const uint64_t epoch = ports[0]->landing_epoch();
  CHECK(epoch != 0);
  devices.take_lent();
  CHECK(ports[0]->landing_epoch() != epoch);
  memory.fill(std::byte{0x66});
  check_arrival();
}

TEST_CASE_METHOD(Lending, "what is lent is taken before a failed request is shown to its program") {
  const bool together = GENERATE(false, true);
  if (together) devices.set_parallel(ParallelMode::always, 2, fabric);
  devices.let_payload_be_lent(fabric, copy);
  send_run();
  const uint64_t epoch = ports[0]->landing_epoch();
  Ring& ring = fail_request(devices.at(GENERATE(0u, 1u)).hca());
  devices.turn(2000);
  CHECK(ports[0]->landing_epoch() != epoch);
  REQUIRE(ring.failures == 1);
  CHECK(memory[0] == std::byte{0x66});
  CHECK((devices.parallel_stats().parallel_turns != 0) == together);
  check_arrival();
}

TEST_CASE_METHOD(Lending, "what waits for a port that takes no more is taken when it has to be") {
  constexpr uint32_t kBytes = 16384;
  const auto mapped = mapped_file(kBytes);
  std::ranges::fill(mapped->bytes(), std::byte{0x55});

  dpdk_io::FramePool runs("lending", 64, transport::kMaxRunFrameBytes);
  FullPort port(runs);
  gids.add(device::default_config(kDevices + 1).port);
  {
    EngineDevices of_full_port(nic.pool());
    of_full_port.add(std::make_unique<device::Hca>(device::default_config(kDevices),
                                                   transport::TransportLimits{}, gids),
                     port, false);
    of_full_port.let_payload_be_lent(fabric, copy);
    const Lender lender(of_full_port.at(0).hca(), memory);
    lender.connect(device::default_config(kDevices + 1).port.gids[1].gid);
    lender.post({}, lender.reg_mr(mapped).lkey, kBytes);
    of_full_port.turn(1000);
    REQUIRE(port.offered > 0);

    of_full_port.take_lent();
    std::ranges::fill(mapped->bytes(), std::byte{0x66});
    port.open = true;
    of_full_port.turn(2000);
  }
  CHECK(port.lent == 0);
  CHECK(std::ranges::count(port.sent, std::byte{0x55}) >= kBytes);
  CHECK(std::ranges::count(port.sent, std::byte{0x66}) < 64);  // of headers
}

TEST_CASE_METHOD(Lending, "what a READ brings is where it belongs before its answer arrives") {
  constexpr uint32_t kBytes = 16384;
  dpdk_io::FramePool runs("landing", 64, transport::kMaxRunFrameBytes);
  dpdk_io::Switch own(nic.pool());
  own.let_icrc_wait([](std::span<std::byte>) {});
  own.let_runs_pass(runs);
  const std::array configs{device::default_config(0), device::default_config(1)};
  EngineDevices both(nic.pool());
  for (const device::HcaConfig& config : configs) {
    gids.add(config.port);
    both.add(std::make_unique<device::Hca>(config, transport::TransportLimits{}, gids),
             own.add_port(config.port.mac, "port"), true);
  }
  both.let_payload_be_lent(own, copy);
  const auto near = mapped_file(kBytes);
  const auto far = mapped_file(kBytes);
  std::ranges::fill(far->bytes(), std::byte{0x55});
  const Lender reader(both.at(0).hca(), memory);
  const Lender owner(both.at(1).hca(), memory);
  reader.connect(configs[1].port.gids[1].gid, owner.qp.qpn);
  owner.connect(configs[0].port.gids[1].gid, reader.qp.qpn);

  transport::SendWork read;
  read.opcode = transport::WorkOpcode::read;
  read.signaled = true;
  read.remote_address = Lender::kBase;
  read.rkey = owner.reg_mr(far).rkey;
  reader.post(std::move(read), reader.reg_mr(near).lkey, kBytes);
  both.turn(1000);
  CHECK(reader.ring->pushed == 0);
  CHECK(std::ranges::equal(near->bytes(), far->bytes()));
  both.turn(2000);
  CHECK(reader.ring->pushed == 1);
  CHECK(reader.ring->failures == 0);
}

}  // namespace rocemu::daemon
