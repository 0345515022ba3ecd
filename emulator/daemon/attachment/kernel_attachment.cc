#include "emulator/daemon/attachment/kernel_attachment.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "dpdk_io/kernel/interface_port.h"
#include "dpdk_io/kernel/udp_port.h"
#include "emulator/daemon/attachment/port_description.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/icrc_identification.h"

namespace rocemu::daemon {
namespace {

using dpdk_io::KernelInterface;
using dpdk_io::PortKind;

// The kernel charges a socket's buffer so much for a datagram of the largest path MTU: two pages
// and its own structures.
constexpr unsigned kDatagramBytes = 2 * 4096 + 1024;

const dpdk_io::IdentificationSeal kSeal{wire::set_identification, wire::icrc_matches};

std::runtime_error error(const dpdk_io::PortSpec& spec, const std::string& why) {
  return std::runtime_error("port " + dpdk_io::to_text(spec) + ": " + why);
}

}  // namespace

KernelAttachment::KernelAttachment(const dpdk_io::PortSpec& spec, unsigned number,
                                   dpdk_io::KernelNetwork& network, dpdk_io::FramePool& pool)
    : spec_(spec), network_(network) {
  if (spec.kind == PortKind::interface) {
    open_interface(number, pool);
  } else {
    open_sockets(number, pool);
  }
}

void KernelAttachment::open_interface(unsigned number, dpdk_io::FramePool& pool) {
  const auto interface = network_.interface_named(spec_.name);
  if (!interface)
    throw error(spec_,
                "there is no such interface in this network namespace; ip link lists those there "
                "are");
  if (!interface->ethernet) {
    throw error(spec_, "it is no Ethernet interface" +
                           std::string(interface->loopback ? "; for two NICs on one machine leave "
                                                             "--port out, or use udp:127.0.0.1"
                                                           : "; use udp:ADDRESS"));
  }
  if (!interface->enabled)
    throw error(spec_, "it is down; bring it up first: ip link set " + spec_.name + " up");
  interface_index_ = interface->index;
  memberships_.emplace(interface_index_);
  auto wire = std::make_unique<dpdk_io::InterfacePort>(spec_.name, wire::kRoceUdpPort, pool, kSeal);
  window_packets_ = std::max(1u, wire->receive_buffer_bytes() / kDatagramBytes);
  interface_port_ = wire.get();
  port_ = std::make_unique<dpdk_io::UplinkPort>(std::move(wire), number, pool);
}

void KernelAttachment::open_sockets(unsigned number, dpdk_io::FramePool& pool) {
  std::vector<dpdk_io::UdpPort::LocalAddress> locals;
  for (const IpAddress& address : spec_.addresses) {
    const auto interface = interface_with(address);
    if (!interface)
      throw error(spec_, rocemu::to_text(address) +
                             " is no address of this machine or network namespace; ip address "
                             "lists them");
    locals.push_back({address, interface->index});
  }
  auto sockets = std::make_unique<dpdk_io::UdpPort>(locals, wire::kRoceUdpPort, pool, kSeal);
  window_packets_ = std::max(1u, sockets->receive_buffer_bytes() / kDatagramBytes);
  port_ = std::make_unique<dpdk_io::UplinkPort>(std::move(sockets), number, pool);
}

std::optional<KernelInterface> KernelAttachment::interface_with(const IpAddress& address) {
  // All of 127.0.0.0/8 is an address of the loopback interface, although only one is listed.
  if (address.is_loopback_ipv4()) return network_.interface_named("lo");
  return network_.interface_with(address);
}

device::PortConfig KernelAttachment::describe(const device::PortConfig& before) {
  if (spec_.kind == PortKind::interface)
    return describe_interface_port(before, network_.interface_at(interface_index_));
  std::vector<UdpAddress> addresses;
  for (const IpAddress& address : spec_.addresses)
    addresses.push_back({address, interface_with(address)});
  return describe_udp_port(before, addresses);
}

void KernelAttachment::follow(const device::PortConfig& port) noexcept {
  Attachment::follow(port);
  if (interface_port_ != nullptr)
    interface_port_->set_longest_in_batch(port.mtu_bytes + kMaxHeaderBytes + port.trailer_bytes);
}

void KernelAttachment::find(const device::PortConfig& port, const wire::Gid& destination,
                            Answered answered) {
  answered(look_up(port, destination));
}

Attachment::Answer KernelAttachment::look_up(const device::PortConfig& port,
                                             const wire::Gid& destination) {
  using Kind = Answer::Kind;
  if (std::ranges::find(port.gids, destination, &device::GidEntry::gid) != port.gids.end())
    return {Kind::found, port.mac};
  const IpAddress address = destination;
  const auto hop = network_.route(address, interface_index_);
  if (!hop) return {};
  if (spec_.kind == PortKind::udp) return {Kind::found, mac_standing_for_peer(port, address)};
  // An address of this machine on another interface is behind no neighbour of this one.
  if (hop->local || hop->interface_index != interface_index_) return {};
  const dpdk_io::Neighbour neighbour = network_.neighbour(interface_index_, hop->address);
  switch (neighbour.state) {
    case dpdk_io::Neighbour::State::known:
      return {Kind::found, neighbour.mac};
    case dpdk_io::Neighbour::State::unknown:
    case dpdk_io::Neighbour::State::resolving:
    case dpdk_io::Neighbour::State::failed:
      break;
  }
  return {Kind::not_yet, {}};
}

void KernelAttachment::begin_to_ask(const wire::Gid& destination) {
  network_.make_kernel_resolve(interface_index_, destination);
}

}  // namespace rocemu::daemon
