#include "emulator/daemon/daemon.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "emulator/daemon/attachment/links.h"
#include "emulator/daemon/attachment/port_description.h"
#include "emulator/daemon/view/metrics.h"
#include "emulator/dma/guarded_access.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

using boost::system::error_code;

constexpr size_t kNoHost = ~size_t{0};  // the host of a device that is not on the described network

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
    : dpdk_switch_(options),
      attachments_(io_, engine_, dpdk_switch_.pool(), options.devices),
      inspection_(options.check ? std::make_unique<inspection::Inspection>(options.devices)
                                : nullptr),
      engine_(dpdk_switch_.pool()),
      nic_{engine_, configure(options), options.dma, monotonic_now_ns(), [this] { io_.stop(); }},
      administration_(nic_),
      signals_(io_, SIGTERM, SIGINT) {
  engine_.set_capture(dpdk_switch_.capture());
  set_up_shaking(options);
  set_up_devices(options);
  set_up_services(options);
  signals_.async_wait([this](const error_code& error, int) {
    if (!error) io_.stop();
  });
  set_up_tracing(options);
  attachments_.watch([this] { shown_ports_->follow_network(); });
  engine_.start();
  control_->start();
  shown_ports_->follow_network();
  for (const std::string& fault : options.faults)
    if (const auto armed = faults_->add(fault); !armed)
      throw std::system_error(armed.error(), std::generic_category(), "fault '" + fault + "'");
  shown_ports_->refresh_counters();
}

Daemon::~Daemon() = default;

void Daemon::set_up_devices(const Options& options) {
  nic_.fabric = &dpdk_switch_.ports();
  for (const dpdk_io::PortAssignment& assignment : options.ports) attach(assignment, options);
  for (const device::HcaConfig& config : nic_.devices)
    if (attachments_.of(config.index) == nullptr) gids_.add(config.port);
  size_t host = 0;
  for (const device::HcaConfig& config : nic_.devices)
    add_device(config, limits_of(config, options,
                                 attachments_.of(config.index) == nullptr ? host++ : kNoHost));
  // An inspector looks at what other devices' inspectors remember.
  engine_.set_parallel(inspection_ == nullptr ? options.parallel : ParallelMode::never,
                       options.parallel_threads, dpdk_switch_.ports());
  engine_.let_payload_be_lent(dpdk_switch_.ports(), dma::guarded_read);
  for (const impairment::Assignment& assignment : options.impair)
    set_links(nic_.ports, assignment, nic_.devices);
}

// Gives a device a port of the machine's network, and that port's identity.
void Daemon::attach(const dpdk_io::PortAssignment& assignment, const Options& options) {
  if (assignment.spec.kind == dpdk_io::PortKind::fabric) return;
  device::HcaConfig& device = *std::ranges::find(nic_.devices, assignment.device,
                                                 [](const auto& config) { return config.name; });
  if (const auto& kind = options.congestion[device.index].kind)
    device.port.trailer_bytes = transport::TelemetryOffer::bytes_for(kind->needs);
  Attachment& attachment = attachments_.attach(assignment.spec, device);
  dpdk_switch_.record(attachment.port());
  spdlog::info("{} is on {}, {}", device.name, dpdk_io::to_text(assignment.spec),
               describe_port_state(device.port));
}

// `host`: which of the network's it is.
transport::TransportLimits Daemon::limits_of(const device::HcaConfig& config,
                                             const Options& options, size_t host) const {
  transport::TransportLimits limits = options.transport;
  limits.congestion = options.congestion[config.index];
  // attach() gives room for it to the ports that can.
  limits.port_carries_telemetry = host != kNoHost || config.port.trailer_bytes != 0;
  if (options.network && host != kNoHost)
    limits.line_rate_bps = options.network->topology.rate_of_host(host);
  return limits;
}

void Daemon::add_device(const device::HcaConfig& config, transport::TransportLimits limits) {
  Attachment* const attachment = attachments_.of(config.index);
  nic_.path_finders.push_back(attachments_.path_finder(config.index));
  nic_.groups.push_back(attachment == nullptr ? nullptr : attachment->groups());
  if (attachment == nullptr) {
    nic_.ports.push_back(&dpdk_switch_.ports().add_port(config.port.mac, config.name));
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

// Writes ROCEMU_SHAKE_NAME, which whoever started the NIC reads when a program has failed.
void Daemon::set_up_shaking(const Options& options) {
  if (!options.shake.on()) return;
  shake::Settings settings = options.shake;
  // The checker would take it for a program that posts its receives too late.
  if (options.check) settings.chosen[shake::index_of(shake::Behaviour::rnr)] = false;
  shaking_ = std::make_unique<NicShaking>(settings, options.devices);
  nic_.shaking = shaking_.get();
  const std::string text = shake::to_text(settings);
  spdlog::info("shaken: {}", text);
  std::ofstream(options.dir / ROCEMU_SHAKE_NAME) << text << '\n';
}

void Daemon::set_up_services(const Options& options) {
  cm_ = std::make_unique<CmService>(io_, engine_, nic_.devices, gids_, nic_.path_finders);
  nic_.cm = cm_.get();
  faults_ = std::make_unique<FaultInjector>(
      io_, engine_, nic_.devices, nic_.started_ns,
      [this](uint32_t device) { shown_ports_->show(device); },
      [this](uint32_t device, bool lost) { cm_->set_lost(device, lost); });
  nic_.faults = faults_.get();
  if (PcapngFile* const capture = dpdk_switch_.commented_capture())
    comments_ = std::make_unique<CaptureComments>(*capture, engine_, nic_.devices, nic_.ports);
  tracing_ = std::make_unique<NicTracing>(io_, engine_, nic_.devices, nic_.ports);
  nic_.tracing = tracing_.get();
  cm_->watch_mads([this](const cm::Route& route, std::span<const std::byte> mad, bool sent) {
    tracing_->on_mad(route.device, route.remote, mad, sent);
  });
  // The socket comes first: whoever has it may replace the tree.
  control_ = std::make_unique<ControlPlane>(io_, nic_, options, inspection_.get());
  shown_ports_ =
      std::make_unique<ShownPorts>(io_, nic_, attachments_, gids_, options.dir / ROCEMU_SYSFS_NAME);
  if (options.metrics) serve_metrics(*options.metrics);
}

void Daemon::serve_metrics(const MetricsAddress& address) {
  metrics_ =
      std::make_unique<MetricsServer>(io_, address, kMetricsType, [this](MetricsServer::Done done) {
        engine_.post(Task([this, done = std::move(done)]() mutable {
          boost::asio::post(io_, [report = administration_.take_metrics(), done = std::move(done)] {
            done(report());
          });
        }));
      });
  nic_.metrics = metrics_->address();
  spdlog::info("metrics are served at {}", nic_.metrics);
}

// Before programs can come, so that nothing of theirs is missing.
void Daemon::set_up_tracing(const Options& options) {
  const std::optional<std::filesystem::path>& path =
      options.trace ? options.trace : options.trace_on_error;
  if (!path) return;
  TraceSettings settings;
  settings.on_error = !options.trace;
  settings.filter = options.trace_filter;
  settings.devices = options.trace_devices;
  if (options.trace_last) settings.last_records = *options.trace_last;
  if (options.trace_limit_mb) settings.max_bytes = *options.trace_limit_mb * 1'000'000;
  // What it tells is for the owner's eyes: keys and addresses of programs.
  UniqueFd file(::open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const int error = file ? tracing_->start(std::move(file), settings) : errno;
  if (error == ENODEV)
    throw std::runtime_error("--trace-filter names a device that this NIC does not have");
  if (error != 0)
    throw std::runtime_error("can't write a trace to " + path->string() + ": " +
                             (error == EBADF ? "it is no regular file" : std::strerror(error)));
}

void Daemon::run() {
  control_->run();
  tracing_->detach_at_end();
  engine_.stop();
}

}  // namespace rocemu::daemon
