#include "emulator/daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>

#include "dpdk_io/ethdev/device_arguments.h"
#include "dpdk_io/ethdev/pci_device.h"
#include "emulator/daemon/attachment/address_text.h"
#include "emulator/daemon/attachment/links.h"
#include "emulator/daemon/attachment/port_description.h"
#include "emulator/daemon/cm_service/cm_conversation.h"
#include "emulator/transport/interface/host_interface.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

using boost::system::error_code;

// All devices together have so many frames. Each QP may have a window (256) of them on the wire;
// when the pool is empty, senders wait.
constexpr unsigned kFrames = 4096;
constexpr size_t kNoHost = ~size_t{0};      // of a network: the device has another port
constexpr size_t kControlConnections = 64;  // on top of as many as there can be contexts
constexpr std::chrono::seconds kCounterPeriod{1};

std::string describe_port_state(const device::PortConfig& port) {
  std::string text = std::string(port.active ? "up" : "down") + ", path MTU " +
                     std::to_string(port.mtu_bytes) + ", MAC " + to_text(port.mac) + ", GIDs";
  for (const device::GidEntry& entry : port.gids) text += " " + to_text(entry.gid);
  return text;
}

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

// Looks at the PCI bus for the NICs that are asked for and for no other. DPDK says little of what
// is in the way, so that is found out before it starts.
dpdk_io::EalOptions eal_options(const Options& options) {
  dpdk_io::EalOptions eal;
  for (const dpdk_io::PortAssignment& port : options.ports) {
    if (port.spec.kind == dpdk_io::PortKind::vdev || port.spec.kind == dpdk_io::PortKind::pci)
      eal.memory_mb += dpdk_io::EthernetDevice::kMemoryMb;
    if (port.spec.kind != dpdk_io::PortKind::pci) continue;
    const std::string address(dpdk_io::device_name(port.spec.name));
    if (const std::string why = dpdk_io::why_not_usable(address); !why.empty())
      throw std::runtime_error("port pci:" + address + ": " + why);
    eal.pci_devices.push_back(port.spec.name);
  }
  return eal;
}

}  // namespace

Daemon::Daemon(const Options& options)
    : eal_(eal_options(options)),
      pool_("frames", kFrames, transport::kMaxFrameBytes),
      switch_(pool_),
      attachments_(io_, engine_, pool_, options.devices),
      inspection_(options.check ? std::make_unique<inspection::Inspection>(options.devices)
                                : nullptr),
      engine_(pool_),
      nic_{engine_, configure(options), options.dma, monotonic_now_ns(), [this] { io_.stop(); }},
      networks_(options.devices),
      executor_(io_, engine_),
      administration_(nic_),
      sessions_{nic_.devices, executor_,   administration_, {},
                {},           options.dma, &shares_,        inspection_.get()},
      signals_(io_, SIGTERM, SIGINT),
      counter_timer_(io_) {
  if (options.pcap) set_up_capture(*options.pcap, options.pcap_limit_mb);
  set_up_shaking(options);
  set_up_devices(options);
  cm_ = std::make_unique<CmService>(io_, engine_, nic_.devices, gids_, nic_.path_finders);
  set_up_control(options);
  set_up_faults();
  signals_.async_wait([this](const error_code& error, int) {
    if (!error) io_.stop();
  });
  attachments_.watch([this] { follow_network(); });
  engine_.start();
  listener_->start();
  follow_network();
  for (const std::string& fault : options.faults) faults_->add(fault);
  refresh_counters();
}

Daemon::~Daemon() = default;

void Daemon::set_up_capture(const std::filesystem::path& path, std::optional<uint64_t> limit_mb) {
  constexpr uint64_t kBytesPerMb = 1'000'000;
  capture_ = std::make_unique<dpdk_io::PcapWriter>(
      path, dpdk_io::PcapWriter::kWholeFrames,
      [](const std::string& message) { spdlog::error("{}", message); },
      limit_mb ? *limit_mb * kBytesPerMb : dpdk_io::PcapWriter::kNoLimit);
  switch_.set_capture(capture_.get(), realtime_ns);
  engine_.set_capture(capture_.get());
}

void Daemon::set_up_devices(const Options& options) {
  nic_.fabric = &switch_;
  if (options.network)
    switch_.set_network(options.network->topology, options.network->settings, monotonic_now_ns());
  for (const dpdk_io::PortAssignment& assignment : options.ports) attach(assignment);
  for (const device::HcaConfig& config : nic_.devices)
    if (attachments_.of(config.index) == nullptr) gids_.add(config.port);
  size_t host = 0;
  for (const device::HcaConfig& config : nic_.devices)
    add_device(config, limits_of(config, options,
                                 attachments_.of(config.index) == nullptr ? host++ : kNoHost));
  // An inspector looks at what other devices' inspectors remember.
  engine_.set_parallel(inspection_ == nullptr ? options.parallel : ParallelMode::never, switch_);
  for (const impairment::Assignment& assignment : options.impair)
    set_links(nic_.ports, assignment, nic_.devices);
}

// Gives a device a port of the machine's network, and that port's identity.
void Daemon::attach(const dpdk_io::PortAssignment& assignment) {
  if (assignment.spec.kind == dpdk_io::PortKind::fabric) return;
  device::HcaConfig& device = *std::ranges::find(nic_.devices, assignment.device,
                                                 [](const auto& config) { return config.name; });
  Attachment& attachment = attachments_.attach(assignment.spec, device);
  if (capture_ != nullptr) attachment.port().set_capture(capture_.get(), realtime_ns);
  spdlog::info("{} is on {}, {}", device.name, dpdk_io::to_text(assignment.spec),
               describe_port_state(device.port));
}

// `host`: which of the network's it is.
transport::TransportLimits Daemon::limits_of(const device::HcaConfig& config,
                                             const Options& options, size_t host) const {
  transport::TransportLimits limits = options.transport;
  limits.congestion = options.congestion[config.index];
  if (options.network && host != kNoHost)
    limits.line_rate_bps = options.network->topology.rate_of_host(host);
  return limits;
}

void Daemon::add_device(const device::HcaConfig& config, transport::TransportLimits limits) {
  Attachment* const attachment = attachments_.of(config.index);
  nic_.path_finders.push_back(attachments_.path_finder(config.index));
  nic_.groups.push_back(attachment == nullptr ? nullptr : attachment->groups());
  if (attachment != nullptr)
    networks_[config.index] = std::make_unique<AttachedNetwork>(
        *attachments_.path_finder(config.index), attachment->groups());
  sessions_.networks.push_back(networks_[config.index].get());
  if (attachment == nullptr) {
    nic_.ports.push_back(&switch_.add_port(config.port.mac, config.name));
    return add_to_engine(config, limits, gids_, true);
  }
  nic_.ports.push_back(&attachment->port());
  limits.window_packets = std::min(limits.window_packets, attachment->window_packets());
  add_to_engine(config, limits, attachment->learned(), false);
}

void Daemon::add_to_engine(const device::HcaConfig& config,
                           const transport::TransportLimits& limits,
                           device::AddressResolver& resolver, bool on_switch) {
  device::HcaParts parts;
  if (shaking_ != nullptr) parts = shaking_->device(config.index).parts();
  if (inspection_ != nullptr) parts = inspection_->decorate(config.index, std::move(parts));
  auto hca = std::make_unique<device::Hca>(config, limits, resolver, parts);
  if (inspection_ != nullptr) inspection_->watch(config.index, *hca);
  dpdk_io::Port& port = *nic_.ports.back();
  engine_.add_device(std::move(hca),
                     shaking_ != nullptr ? shaking_->wrap_port(config.index, port) : port,
                     on_switch);
}

// Whoever started the NIC reads the file when a program has failed.
void Daemon::set_up_shaking(const Options& options) {
  if (!options.shake.on()) return;
  shake::Settings settings = options.shake;
  // The checker would take it for a program that posts its receives too late.
  if (options.check) settings.chosen[shake::index_of(shake::Behaviour::rnr)] = false;
  shaking_ = std::make_unique<NicShaking>(settings, options.devices);
  sessions_.decorator = shaking_.get();
  nic_.shaking = shaking_.get();
  const std::string text = shake::to_text(settings);
  spdlog::info("shaken: {}", text);
  std::ofstream(options.dir / ROCEMU_SHAKE_NAME) << text << '\n';
}

void Daemon::set_up_control(const Options& options) {
  nic_.cm = cm_.get();
  sessions_.new_cm_program = [this](pid_t program) {
    return std::make_unique<CmConversation>(*cm_, program);
  };
  const size_t max_sessions =
      size_t{options.limits.max_contexts} * options.devices + kControlConnections;
  // The socket comes first: whoever has it may replace the tree.
  listener_ = std::make_unique<Listener>(io_, sessions_, &mailbox_poller_,
                                         options.dir / ROCEMU_SOCKET_NAME, max_sessions);
  sysfs_ = std::make_unique<SysfsTree>(options.dir / ROCEMU_SYSFS_NAME, nic_.devices);
}

void Daemon::set_up_faults() {
  for (const device::HcaConfig& device : nic_.devices) ports_.push_back(device.port);
  faults_ = std::make_unique<FaultInjector>(io_, engine_, nic_.devices, nic_.started_ns,
                                            [this](uint32_t device) { show_port(device); });
  nic_.faults = faults_.get();
  sessions_.gate = faults_.get();
}

// Interfaces and addresses may have changed, and what a program sees of the ports follows them.
void Daemon::follow_network() {
  for (const device::HcaConfig& device : nic_.devices) {
    Attachment* const attachment = attachments_.of(device.index);
    if (attachment == nullptr) continue;
    try {
      device::PortConfig& port = ports_[device.index];
      port = attachment->describe(port);
    } catch (const std::exception& error) {
      spdlog::error("{}: {}", device.name, error.what());
    }
    show_port(device.index);
  }
}

// What programs and peers see of a port: as it is, and what faults make of that.
void Daemon::show_port(uint32_t index) {
  device::HcaConfig& device = nic_.devices[index];
  const device::PortConfig port = faults_->seen(index, ports_[index]);
  if (port == device.port) return;
  Attachment* const attachment = attachments_.of(index);
  if (attachment == nullptr) gids_.replace(device.port, port);
  device.port = port;
  spdlog::info("{}: {}", device.name, describe_port_state(port));
  try {
    // The files come first, so that a program that gets the event finds the news there.
    sysfs_->write_port(device);
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", device.name, error.what());
  }
  cm_->follow(device);
  engine_.post(Task([this, index, attachment, port] {
    if (attachment != nullptr) attachment->follow(port);
    engine_.hca(index).set_port(port);
  }));
}

void Daemon::run() {
  mailbox_poller_.run(io_);
  listener_->close();
  engine_.stop();
}

// The counters are what changes in sysfs without an event. A NIC without traffic writes nothing.
void Daemon::refresh_counters() {
  counter_timer_.expires_after(kCounterPeriod);
  counter_timer_.async_wait([this](const error_code& error) {
    if (error) return;
    engine_.post(Task([this] {
      boost::asio::post(io_, [this, snapshot = engine_.snapshot()] {
        write_counters(snapshot);
        leave_groups(snapshot);
        refresh_counters();
      });
    }));
  });
}

// The group of a QP is joined before the program hears that the QP is attached. QPs go in many
// ways, so groups are left when they are found to have no QP any more.
void Daemon::leave_groups(const EngineSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    dpdk_io::MulticastGroups* const joined = nic_.groups_of(static_cast<uint32_t>(i));
    if (joined == nullptr || joined->count() == 0) continue;
    std::vector<IpAddress> groups;
    for (const wire::Gid& group : snapshot.devices[i].groups) groups.push_back(group);
    joined->keep(groups);
  }
}

void Daemon::write_counters(const EngineSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    const DeviceSnapshot& device = snapshot.devices[i];
    try {
      sysfs_->write_counters(nic_.devices[i], device.counters, device.port);
    } catch (const std::exception& error) {
      spdlog::error("{}", error.what());
    }
  }
}

}  // namespace rocemu::daemon
