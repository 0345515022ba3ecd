#include "emulator/daemon/engine/engine_devices.h"

#include <catch2/catch.hpp>

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
