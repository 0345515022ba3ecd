#include "dpdk_io/spec/port_spec.h"

#include <net/if.h>

#include <algorithm>

#include "dpdk_io/ethdev/device_arguments.h"
#include "dpdk_io/ethdev/pci_device.h"
#include "dpdk_io/spec/network_spec.h"

namespace rocemu::dpdk_io {
namespace {

constexpr std::string_view kSwitch = "switch";
constexpr std::string_view kInterface = "if:";
constexpr std::string_view kUdp = "udp:";
constexpr std::string_view kVdev = "vdev:";
constexpr std::string_view kPci = "pci:";
constexpr size_t kMaxAddresses = 8;

ParsedPort wrong(std::string error) { return {std::nullopt, std::move(error)}; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

ParsedPort parse_addresses(std::string_view device, std::string_view list) {
  PortSpec spec{.kind = PortKind::udp};
  std::string error = for_each_part(list, '+', [&](std::string_view text) -> std::string {
    const auto address = parse_ip_address(std::string(text));
    if (!address)
      return quoted(text) + " is no IP address; write udp:ADDRESS with an address of this " +
             "machine, like udp:10.0.0.1 or udp:10.0.0.1+fd00::1";
    if (std::ranges::find(spec.addresses, *address) != spec.addresses.end())
      return quoted(text) + " stands there twice";
    spec.addresses.push_back(*address);
    return {};
  });
  if (!error.empty()) return wrong(std::move(error));
  if (spec.addresses.size() > kMaxAddresses)
    return wrong("a udp port has at most " + std::to_string(kMaxAddresses) + " addresses");
  return {PortAssignment{std::string(device), std::move(spec)}, {}};
}

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() < IF_NAMESIZE && name != "." && name != ".." &&
         std::ranges::none_of(
             name, [](unsigned char c) { return c <= ' ' || c == '/' || c == ',' || c == 0x7f; });
}

ParsedPort parse_device(std::string_view device, PortKind kind, std::string_view text) {
  PortSpec spec{.kind = kind};
  const size_t at = text.rfind('@');
  spec.name = text.substr(0, at);
  if (kind == PortKind::pci) {
    const std::string bdf = whole_pci_address(device_name(spec.name));
    if (bdf.empty())
      return wrong(quoted(device_name(spec.name)) +
                   " is no PCI address; write it like lspci -D does: pci:0000:03:00.0");
    spec.name.replace(0, device_name(spec.name).size(), bdf);
  }
  if (device_name(spec.name).empty())
    return wrong("vdev: without a device; write it as DPDK does, like vdev:net_tap0,iface=tap0");
  if (at != std::string_view::npos)
    if (std::string error = parse_network(text.substr(at + 1), spec); !error.empty())
      return wrong(std::move(error));
  return {PortAssignment{std::string(device), std::move(spec)}, {}};
}

}  // namespace

ParsedPort parse_port(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return wrong(quoted(text) + " is not DEVICE=PORT, like rocemu0=eth0 or rocemu0=udp:10.0.0.1");
  const std::string device(text.substr(0, equals));
  std::string_view spec = text.substr(equals + 1);
  const auto found = [&](PortKind kind, std::string_view name) {
    return ParsedPort{PortAssignment{device, {.kind = kind, .name = std::string(name)}}, {}};
  };
  if (spec == kSwitch) return found(PortKind::fabric, {});
  if (spec.starts_with(kUdp)) return parse_addresses(device, spec.substr(kUdp.size()));
  if (spec.starts_with(kVdev))
    return parse_device(device, PortKind::vdev, spec.substr(kVdev.size()));
  if (spec.starts_with(kPci)) return parse_device(device, PortKind::pci, spec.substr(kPci.size()));
  if (spec.starts_with(kInterface)) spec.remove_prefix(kInterface.size());
  if (!is_interface_name(spec))
    return wrong(quoted(spec) +
                 " is no port; it is switch, the name of a network interface, udp:ADDRESS, "
                 "vdev:SPEC or pci:BDF");
  return found(PortKind::interface, spec);
}

std::string to_text(const PortSpec& spec) {
  switch (spec.kind) {
    case PortKind::fabric:
      return std::string(kSwitch);
    case PortKind::interface:
      return spec.name;
    case PortKind::vdev:
      return std::string(kVdev) + spec.name + network_text(spec);
    case PortKind::pci:
      return std::string(kPci) + spec.name + network_text(spec);
    case PortKind::udp:
      break;
  }
  return std::string(kUdp) +
         joined(spec.addresses, [](const IpAddress& address) { return to_text(address); });
}

}  // namespace rocemu::dpdk_io
