#include "emulator/daemon/attachment/ethdev_attachment.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <utility>

#include "dpdk_io/ethdev/pci_device.h"
#include "emulator/daemon/attachment/address_text.h"
#include "emulator/daemon/attachment/port_description.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::daemon {
namespace {

using dpdk_io::IpHost;

constexpr std::chrono::seconds kConnectPeriod{1};
constexpr std::chrono::minutes kReportPeriod{1};  // anybody on the link can make us say it

dpdk_io::EthernetDeviceRequest request_for(const dpdk_io::PortSpec& spec,
                                           const device::PortConfig& port) {
  using Bus = dpdk_io::EthernetDeviceRequest::Bus;
  return {spec.kind == dpdk_io::PortKind::pci ? Bus::pci : Bus::vdev, spec.name, spec.mtu_bytes,
          port.mac};
}

}  // namespace

EthdevAttachment::EthdevAttachment(const dpdk_io::PortSpec& spec, const device::HcaConfig& config,
                                   boost::asio::io_context& io, Engine& engine,
                                   dpdk_io::FramePool& pool)
    : name_(config.name),
      ip_(spec.ip.addresses.empty() ? default_network(config.port) : spec.ip),
      io_(io),
      engine_(engine),
      device_(request_for(spec, config.port)) {
  ip_.gateways = spec.ip.gateways;
  auto wire = std::make_unique<dpdk_io::EthdevPort>(
      device_,
      dpdk_io::EthdevPort::Settings{ip_, spec.vlan_id, wire::kRoceUdpPort,
                                    transport::kMaxFrameBytes},
      pool, std::random_device{}());
  ethdev_port_ = wire.get();
  port_ = std::make_unique<dpdk_io::UplinkPort>(std::move(wire), config.index, pool);
  window_packets_ = std::max(1u, device_.receive_capacity());
  link_is_up_ = device_.link_is_up();
}

// The port goes first: on links with a delay it holds frames that are in buffers of the device.
EthdevAttachment::~EthdevAttachment() { port_.reset(); }

device::PortConfig EthdevAttachment::describe(const device::PortConfig& before) {
  return describe_ethdev_port(before, device_.mac(), device_.mtu_bytes(), ip_, link_is_up_);
}

void EthdevAttachment::find(const device::PortConfig& /*port*/, const wire::Gid& destination,
                            Answered answered) {
  engine_.post(Task([this, address = IpAddress(destination), answered = std::move(answered)] {
    const IpHost::Answer found = ethdev_port_->resolve(engine_.clock().now_ns(), address);
    Answer answer{Answer::Kind::unreachable, found.mac};
    if (found.kind == IpHost::Answer::Kind::found) answer.kind = Answer::Kind::found;
    if (found.kind == IpHost::Answer::Kind::not_yet) answer.kind = Answer::Kind::not_yet;
    boost::asio::post(io_, [answered, answer] { answered(answer); });
  }));
}

bool EthdevAttachment::look() {
  report_conflict();
  if (device_.is_wanted_back() && !letting_go_) let_go();
  const bool was_up =
      std::exchange(link_is_up_, !connecting_ && !letting_go_ && device_.link_is_up());
  if (!link_is_up_ && device_.connects()) connect_again();
  if (!link_is_up_ && was_up) stop_waiting_for_a_dead_descriptor();
  if (!link_is_up_) announced_ = false;
  // It may have been up from the beginning.
  if (link_is_up_ && !std::exchange(announced_, true))
    engine_.post(Task([this] { ethdev_port_->on_link_up(engine_.clock().now_ns()); }));
  return link_is_up_ != was_up;
}

// The engine lets go of the device, the control thread restarts it, the engine goes on.
void EthdevAttachment::connect_again() {
  const auto now = std::chrono::steady_clock::now();
  if (connecting_ || now < connect_at_) return;
  connecting_ = true;
  connect_at_ = now + kConnectPeriod;
  engine_.post(Task([this] {
    ethdev_port_->pause();
    boost::asio::post(io_, [this] {
      device_.restart();
      connecting_ = false;
      engine_.post(Task([this] { ethdev_port_->resume(); }));
    });
  }));
}

// Whoever unbinds the NIC's driver or unplugs it waits for that.
void EthdevAttachment::let_go() {
  letting_go_ = true;
  spdlog::error("{}: its NIC is taken away; start the NIC again when it is back", name_);
  engine_.post(Task([this] {
    ethdev_port_->pause();
    boost::asio::post(io_, [this] { device_.give_back(); });
  }));
}

// The descriptor of a tap whose interface was deleted is ready for ever, with nothing to be read.
void EthdevAttachment::stop_waiting_for_a_dead_descriptor() {
  pollfd descriptor{device_.receive_fd(), POLLIN, 0};
  if (descriptor.fd < 0 || ::poll(&descriptor, 1, 0) != 1 || (descriptor.revents & POLLERR) == 0)
    return;
  spdlog::error("{}: its device is gone; start the NIC again", name_);
  engine_.wake_set().remove_port(descriptor.fd);
}

void EthdevAttachment::report_conflict() {
  if (std::chrono::steady_clock::now() < report_at_) return;
  engine_.post(Task([this] {
    const auto conflict = ethdev_port_->host().take_conflict();
    if (!conflict) return;
    boost::asio::post(io_, [this, conflict] {
      report_at_ = std::chrono::steady_clock::now() + kReportPeriod;
      spdlog::warn(
          "{}: {} is also the address of {}; give one of them another: "
          "--port {}=vdev:SPEC@ADDRESS/PREFIX",
          name_, rocemu::to_text(conflict->address), to_text(conflict->mac), name_);
    });
  }));
}

// ---- groups ----

int EthdevAttachment::Groups::join(const IpAddress& group) noexcept {
  if (!is_multicast(group)) return EINVAL;
  if (groups_.contains(group)) return 0;
  if (groups_.size() >= kMaxGroups) return ENOBUFS;
  try {
    groups_.insert(group);
    tell();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

void EthdevAttachment::Groups::keep(std::span<const IpAddress> groups) noexcept {
  const size_t left = std::erase_if(groups_, [&](const IpAddress& group) {
    return std::ranges::find(groups, group) == groups.end();
  });
  if (left != 0) tell();
}

void EthdevAttachment::Groups::tell() {
  Engine& engine = attachment_.engine_;
  engine.post(Task([&engine, port = attachment_.ethdev_port_, groups = groups_] {
    port->set_groups(engine.clock().now_ns(), groups);
  }));
}

}  // namespace rocemu::daemon
