#include "emulator/daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>

#include "emulator/daemon/links.h"
#include "emulator/transport/environment.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

using boost::system::error_code;

// For all devices together. Each QP may have a window (256) of frames on the wire; when the pool is
// empty, senders wait.
constexpr unsigned kFrames = 4096;
constexpr size_t kControlConnections = 64;  // on top of as many as there can be contexts
constexpr std::chrono::seconds kCounterPeriod{1};

uint64_t realtime_ns() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

std::vector<device::HcaConfig> configure(const Options& options) {
  std::vector<device::HcaConfig> devices;
  for (uint32_t i = 0; i < options.devices; ++i) {
    devices.push_back(device::default_config(i));
    devices.back().limits = options.limits;
  }
  return devices;
}

}  // namespace

Daemon::Daemon(const Options& options)
    : eal_(dpdk_io::EalOptions{}),
      pool_("frames", kFrames, transport::kMaxFrameBytes),
      switch_(pool_),
      engine_(pool_),
      nic_{engine_, configure(options), options.dma, monotonic_now_ns(), [this] { io_.stop(); },
           &switch_},
      signals_(io_, SIGTERM, SIGINT),
      counter_timer_(io_),
      frames_shown_(options.devices) {
  if (options.pcap) {
    capture_ = std::make_unique<dpdk_io::PcapWriter>(
        *options.pcap, dpdk_io::PcapWriter::kWholeFrames,
        [](const std::string& message) { spdlog::error("{}", message); });
    switch_.set_capture(capture_.get(), realtime_ns);
    engine_.set_capture(capture_.get());
  }
  for (const device::HcaConfig& config : nic_.devices) gids_.add(config.port);
  for (const device::HcaConfig& config : nic_.devices) add_device(config, options.transport);
  for (const impairment::Assignment& assignment : options.impair)
    set_links(switch_, assignment, nic_.devices);

  cm_ = std::make_unique<CmService>(io_, engine_, nic_.devices, gids_);
  nic_.cm = cm_.get();

  const size_t max_sessions =
      size_t{options.limits.max_contexts} * options.devices + kControlConnections;
  // The socket first: whoever has it may replace the tree.
  listener_ = std::make_unique<Listener>(io_, nic_, options.dir / ROCEMU_SOCKET_NAME, max_sessions);
  sysfs_ = std::make_unique<SysfsTree>(options.dir / ROCEMU_SYSFS_NAME, nic_.devices);
  signals_.async_wait([this](const error_code& error, int) {
    if (!error) io_.stop();
  });
  engine_.start();
  listener_->start();
  refresh_counters();
}

Daemon::~Daemon() = default;

void Daemon::add_device(const device::HcaConfig& config, const transport::TransportLimits& limits) {
  dpdk_io::Port& port = switch_.add_port(config.port.mac, config.name);
  engine_.add_device(std::make_unique<device::Hca>(config, limits, gids_), port);
}

void Daemon::run() {
  io_.run();
  listener_->close();
  engine_.stop();
}

// The one part of sysfs that changes. A NIC without traffic writes nothing.
void Daemon::refresh_counters() {
  counter_timer_.expires_after(kCounterPeriod);
  counter_timer_.async_wait([this](const error_code& error) {
    if (error) return;
    engine_.post(Task([this] {
      boost::asio::post(io_, [this, snapshot = take_snapshot(nic_)] {
        write_counters(snapshot);
        refresh_counters();
      });
    }));
  });
}

void Daemon::write_counters(const Snapshot& snapshot) {
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    const DeviceSnapshot& device = snapshot.devices[i];
    const uint64_t frames = device.port.rx_frames + device.port.tx_frames;
    if (frames == frames_shown_[i]) continue;
    frames_shown_[i] = frames;
    try {
      sysfs_->write_counters(nic_.devices[i], device.counters, device.port);
    } catch (const std::exception& error) {
      spdlog::error("{}", error.what());
    }
  }
}

}  // namespace rocemu::daemon
