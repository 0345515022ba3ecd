#include "dpdk_io/spec/network_spec.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "dpdk_io/ethdev/vlan_tag.h"

namespace rocemu::dpdk_io {
namespace {

constexpr size_t kMaxAddresses = 8;
constexpr unsigned kIpv4Prefix = 24;
constexpr unsigned kIpv6Prefix = 64;
constexpr unsigned kMinMtu = 576;
constexpr unsigned kMaxMtu = 9000;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::optional<unsigned> parse_number(std::string_view text, unsigned min, unsigned max) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < min || number > max)
    return std::nullopt;
  return number;
}

std::string parse_link_address(std::string_view text, std::vector<LinkAddress>& addresses) {
  const size_t slash = text.find('/');
  const auto address = parse_ip_address(std::string(text.substr(0, slash)));
  if (!address || !is_unicast(*address))
    return quoted(text) +
           " is no address that a port can have; write ADDRESS/PREFIX, like "
           "10.0.0.1/24 or fd00::1/64";
  const bool ipv4 = address->is_ipv4();
  std::optional<unsigned> prefix = ipv4 ? kIpv4Prefix : kIpv6Prefix;
  if (slash != std::string_view::npos)
    prefix = parse_number(text.substr(slash + 1), 1, ipv4 ? 32 : 128);
  if (!prefix) return quoted(text) + ": a prefix is 1 to " + (ipv4 ? "32" : "128");
  const auto is_same = [&](const LinkAddress& other) { return other.address == *address; };
  if (std::ranges::any_of(addresses, is_same)) return quoted(text) + " stands there twice";
  if (addresses.size() == kMaxAddresses)
    return "a port has at most " + std::to_string(kMaxAddresses) + " addresses";
  addresses.push_back({*address, static_cast<uint8_t>(*prefix)});
  return {};
}

std::string parse_gateway(std::string_view text, std::vector<IpAddress>& gateways) {
  const auto address = parse_ip_address(std::string(text));
  if (!address || !is_unicast(*address)) return quoted(text) + " is no address of a gateway";
  const auto is_same = [&](const IpAddress& other) { return same_family(other, *address); };
  if (std::ranges::any_of(gateways, is_same))
    return quoted(text) + ": there is one gateway for IPv4 and one for IPv6 at most";
  gateways.push_back(*address);
  return {};
}

std::string parse_setting(std::string_view text, PortSpec& spec) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return for_each_part(text, '+', [&](std::string_view address) {
      return parse_link_address(address, spec.ip.addresses);
    });
  const std::string_view key = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  if (key == "gateway")
    return for_each_part(value, '+', [&](std::string_view address) {
      return parse_gateway(address, spec.ip.gateways);
    });
  if (key == "vlan") {
    const auto id = parse_number(value, 1, kMaxVlanId);
    if (!id) return "vlan=" + std::string(value) + ": an ID is 1 to " + std::to_string(kMaxVlanId);
    spec.vlan_id = static_cast<uint16_t>(*id);
    return {};
  }
  if (key == "mtu") {
    const auto bytes = parse_number(value, kMinMtu, kMaxMtu);
    if (!bytes)
      return "mtu=" + std::string(value) + ": it is " + std::to_string(kMinMtu) + " to " +
             std::to_string(kMaxMtu) + " bytes";
    spec.mtu_bytes = *bytes;
    return {};
  }
  return quoted(text) +
         " behind the @ is none of ADDRESS/PREFIX, gateway=ADDRESS, vlan=ID and "
         "mtu=BYTES";
}

}  // namespace

std::string parse_network(std::string_view text, PortSpec& spec) {
  std::string error = for_each_part(
      text, ',', [&](std::string_view setting) { return parse_setting(setting, spec); });
  if (!error.empty()) return error;
  for (const IpAddress& gateway : spec.ip.gateways) {
    const auto reaches = [&](const LinkAddress& own) { return is_on_link(own, gateway); };
    if (!gateway.is_link_local_ipv6() && std::ranges::none_of(spec.ip.addresses, reaches))
      return "gateway=" + to_text(gateway) + " is in no network of the port's addresses";
  }
  return {};
}

std::string network_text(const PortSpec& spec) {
  std::vector<std::string> settings;
  if (!spec.ip.addresses.empty())
    settings.push_back(joined(spec.ip.addresses, [](const LinkAddress& own) {
      return to_text(own.address) + "/" + std::to_string(own.prefix_bits);
    }));
  if (!spec.ip.gateways.empty())
    settings.push_back("gateway=" + joined(spec.ip.gateways, [](const IpAddress& address) {
                         return to_text(address);
                       }));
  if (spec.vlan_id != 0) settings.push_back("vlan=" + std::to_string(spec.vlan_id));
  if (spec.mtu_bytes != 0) settings.push_back("mtu=" + std::to_string(spec.mtu_bytes));
  if (settings.empty()) return {};
  return "@" + joined(
                   settings, [](const std::string& setting) { return setting; }, ',');
}

}  // namespace rocemu::dpdk_io
