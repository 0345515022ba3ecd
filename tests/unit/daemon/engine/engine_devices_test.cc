#include "emulator/daemon/engine/engine_devices.h"

#include <catch2/catch.hpp>
#include <memory>

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

TEST_CASE("as many threads as are asked for, or half of the CPUs, and of devices alone no more") {
  struct Row {
    ParallelMode mode;
    unsigned asked, cpus, devices, threads;
  };
  const ParallelMode automatic = ParallelMode::automatic, always = ParallelMode::always,
                     programs = ParallelMode::programs;
  const Row row = GENERATE_COPY(values<Row>({{automatic, 0, 1, 8, 1},
                                             {automatic, 0, 2, 8, 1},
                                             {automatic, 0, 3, 8, 2},
                                             {automatic, 0, 16, 64, 8},
                                             {automatic, 0, 128, 64, 16},
                                             {automatic, 0, 16, 2, 8},
                                             {automatic, 4, 2, 8, 4},
                                             {programs, 0, 1, 1, 2},
                                             {programs, 0, 4, 2, 4},
                                             {programs, 3, 4, 2, 3},
                                             {always, 0, 1, 8, 2},
                                             {always, 4, 2, 2, 2},
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
