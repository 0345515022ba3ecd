#include "emulator/daemon/shaking/nic_shaking.h"

#include <time.h>

namespace rocemu::daemon {
namespace {

// A moment in which programs run that look at what is half placed; with the thread's timer slack
// some 70 us.
void pause_for_programs() {
  const timespec moment{0, 20'000};
  ::nanosleep(&moment, nullptr);
}

}  // namespace

NicShaking::NicShaking(const shake::Settings& settings, uint32_t devices) : settings_(settings) {
  for (uint32_t i = 0; i < devices; ++i)
    devices_.push_back(std::make_unique<shake::DeviceShaking>(settings, i, pause_for_programs));
}

dpdk_io::Port& NicShaking::wrap_port(uint32_t device, dpdk_io::Port& port) {
  ports_.push_back(std::make_unique<ShakenPort>(port, *devices_[device]));
  return *ports_.back();
}

}  // namespace rocemu::daemon
