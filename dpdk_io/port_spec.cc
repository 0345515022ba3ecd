#include "dpdk_io/port_spec.h"

#include <net/if.h>

#include <algorithm>

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
  PortSpec spec{PortKind::udp, {}, {}};
  while (true) {
    const std::string_view text = list.substr(0, list.find('+'));
    const auto address = parse_ip_address(std::string(text));
    if (!address)
      return wrong(quoted(text) + " is no IP address; write udp:ADDRESS with an address of this " +
                   "machine, like udp:10.0.0.1 or udp:10.0.0.1+fd00::1");
    if (std::ranges::find(spec.addresses, *address) != spec.addresses.end())
      return wrong(quoted(text) + " stands there twice");
    spec.addresses.push_back(*address);
    if (text.size() == list.size()) break;
    list.remove_prefix(text.size() + 1);
  }
  if (spec.addresses.size() > kMaxAddresses)
    return wrong("a udp port has at most " + std::to_string(kMaxAddresses) + " addresses");
  return {PortAssignment{std::string(device), std::move(spec)}, {}};
}

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() < IF_NAMESIZE && name != "." && name != ".." &&
         std::ranges::none_of(
             name, [](unsigned char c) { return c <= ' ' || c == '/' || c == ',' || c == 0x7f; });
}

}  // namespace

ParsedPort parse_port(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return wrong(quoted(text) + " is not DEVICE=PORT, like rocemu0=eth0 or rocemu0=udp:10.0.0.1");
  const std::string device(text.substr(0, equals));
  std::string_view spec = text.substr(equals + 1);
  const auto found = [&](PortKind kind, std::string_view name) {
    return ParsedPort{PortAssignment{device, {kind, std::string(name), {}}}, {}};
  };
  if (spec == kSwitch) return found(PortKind::fabric, {});
  if (spec.starts_with(kUdp)) return parse_addresses(device, spec.substr(kUdp.size()));
  if (spec.starts_with(kVdev)) return found(PortKind::vdev, spec.substr(kVdev.size()));
  if (spec.starts_with(kPci)) return found(PortKind::pci, spec.substr(kPci.size()));
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
      return std::string(kVdev) + spec.name;
    case PortKind::pci:
      return std::string(kPci) + spec.name;
    case PortKind::udp:
      break;
  }
  std::string text(kUdp);
  for (const IpAddress& address : spec.addresses) {
    if (text.size() != kUdp.size()) text += '+';
    text += to_text(address);
  }
  return text;
}

}  // namespace rocemu::dpdk_io
