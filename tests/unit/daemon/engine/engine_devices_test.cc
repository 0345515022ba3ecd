#include "emulator/daemon/engine/engine_devices.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "dpdk_io/port/lent_payload.h"
#include "dpdk_io/port/run_mark.h"
#include "tests/unit/daemon/nic_fixture.h"

namespace rocemu::daemon {

TEST_CASE(
    "devices without traffic have nothing to do, and a queued frame leaves in the next turn") {
  NicFixture nic;
  DeadPort ports[2];
  GidDirectory gids;
  EngineDevices devices(nic.pool());
  for (uint32_t i = 0; i < 2; ++i)
    devices.add(std::make_unique<device::Hca>(device::default_config(i),
                                              transport::TransportLimits{}, gids),
                ports[i], false);
  REQUIRE(devices.count() == 2);
  CHECK(devices.at(1).hca().config().name == "rocemu1");
  CHECK_FALSE(devices.any_has_work());
  CHECK_FALSE(devices.turn(1000));
  CHECK(devices.next_deadline() == kNever);
  CHECK(devices.next_event() == kNever);
  CHECK_FALSE(devices.takes_all_cpus());

  CHECK(devices.at(1).frames().queue(std::vector<std::byte>(60)));
  CHECK(devices.any_has_work());
  CHECK(devices.turn(2000));
  CHECK_FALSE(devices.any_has_work());
  CHECK(devices.snapshot().size() == 2);
  CHECK(devices.parallel_stats().parallel_turns == 0);
}

TEST_CASE("as many threads as are asked for, or half of the CPUs, but no more than devices") {
  struct Row {
    ParallelMode mode;
    unsigned asked, cpus, devices, threads;
  };
  const ParallelMode automatic = ParallelMode::automatic, always = ParallelMode::always;
  const Row row = GENERATE_COPY(values<Row>({{automatic, 0, 1, 8, 1},
                                             {automatic, 0, 2, 8, 1},
                                             {automatic, 0, 3, 8, 2},
                                             {automatic, 0, 16, 64, 8},
                                             {automatic, 0, 128, 64, 16},
                                             {automatic, 0, 16, 2, 2},
                                             {automatic, 4, 2, 8, 4},
                                             {always, 0, 1, 8, 2},
                                             {always, 0, 4, 8, 4},
                                             {always, 1, 4, 8, 1},
                                             {ParallelMode::never, 4, 4, 8, 1}}));
  CHECK(parallel_threads(row.mode, row.asked, row.cpus, row.devices) == row.threads);
}

TEST_CASE("devices that have their turns at the same time all have them") {
  constexpr unsigned kDevices = 6;
  NicFixture nic;
  GidDirectory gids;
  dpdk_io::Switch fabric(nic.pool());
  EngineDevices devices(nic.pool());
  for (uint32_t i = 0; i < kDevices; ++i)
    devices.add(std::make_unique<device::Hca>(device::default_config(i),
                                              transport::TransportLimits{}, gids),
                fabric.add_port({2, 0, 0, 0, 0, static_cast<uint8_t>(i)}, "port"), true);
  devices.set_parallel(ParallelMode::always, 4, fabric);
  for (TimeNs now = 1000; now < 1'000'000; now += 1000) {
    for (unsigned i = 0; i < kDevices; ++i)
      CHECK(devices.at(i).frames().queue(std::vector<std::byte>(60)));
    CHECK(devices.turn(now));
    while (devices.any_has_work()) devices.turn(now);
  }
  CHECK(devices.parallel_stats().parallel_turns >= 999);
  CHECK(devices.parallel_stats().most_threads == 4);
  for (const DeviceSnapshot& device : devices.snapshot()) CHECK(device.port.tx_frames == 999);
}

namespace {

bool copy(std::byte* to, const std::byte* lent, size_t length_bytes) noexcept {
  std::copy_n(lent, length_bytes, to);
  return true;
}

}  // namespace

TEST_CASE("what runs on the switch have lent is taken when it has to be") {
  constexpr size_t kEthernetBytes = 14;
  NicFixture nic;
  GidDirectory gids;
  dpdk_io::Switch fabric(nic.pool());
  fabric.let_icrc_wait([](std::span<std::byte>) {});
  fabric.let_runs_pass(nic.pool());
  EngineDevices devices(nic.pool());
  dpdk_io::Port* ports[2];
  for (uint32_t i = 0; i < 2; ++i) {
    ports[i] = &fabric.add_port({2, 0, 0, 0, 0, static_cast<uint8_t>(i)}, "port");
    devices.add(std::make_unique<device::Hca>(device::default_config(i),
                                              transport::TransportLimits{}, gids),
                *ports[i], true);
  }
  devices.take_lent();  // nothing is lent yet
  devices.let_payload_be_lent(fabric, copy);
  CHECK(ports[0]->takes_lent());

  std::array<std::byte, 32> memory;
  memory.fill(std::byte{0x55});
  rte_mbuf* run = nic.pool().allocate();
  auto* const bytes =
      reinterpret_cast<std::byte*>(rte_pktmbuf_append(run, kEthernetBytes + memory.size()));
  std::fill_n(bytes, kEthernetBytes + memory.size(), std::byte{0});
  bytes[0] = std::byte{2};
  bytes[5] = std::byte{1};
  dpdk_io::mark_run(run, {2, 16, 100});
  dpdk_io::mark_lent(run, {memory.data(), memory.size(), kEthernetBytes});
  CHECK(ports[0]->transmit(1000, {&run, 1}) == 1);
  devices.take_lent();
  memory.fill(std::byte{0x66});
  rte_mbuf* received = nullptr;
  REQUIRE(ports[1]->receive(1000, {&received, 1}) == 1);
  CHECK(dpdk_io::lent_payload(received) == nullptr);
  CHECK(std::all_of(bytes + kEthernetBytes, bytes + kEthernetBytes + memory.size(),
                    [](std::byte b) { return b == std::byte{0x55}; }));
  dpdk_io::FramePool::free(received);
}

TEST_CASE("devices that are not on the switch never have their turns at the same time") {
  NicFixture nic;
  DeadPort ports[2];
  GidDirectory gids;
  dpdk_io::Switch fabric(nic.pool());
  EngineDevices devices(nic.pool());
  for (uint32_t i = 0; i < 2; ++i)
    devices.add(std::make_unique<device::Hca>(device::default_config(i),
                                              transport::TransportLimits{}, gids),
                ports[i], i == 0);
  devices.set_parallel(ParallelMode::always, 0, fabric);
  devices.turn(1000);
  CHECK(devices.parallel_stats().parallel_turns == 0);
  CHECK_FALSE(devices.takes_all_cpus());
}

}  // namespace rocemu::daemon
