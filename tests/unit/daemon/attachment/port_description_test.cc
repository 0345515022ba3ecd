#include "emulator/daemon/attachment/port_description.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/net/text.h"

namespace rocemu::daemon {
namespace {

IpAddress address_of(const std::string& text) { return parse_ip_address(text).value(); }

constexpr uint8_t kPrefixBits = 20;

dpdk_io::KernelInterface interface_with(const std::vector<std::string>& addresses) {
  dpdk_io::KernelInterface interface;
  interface.index = 7;
  interface.name = "eth0";
  interface.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
  interface.ethernet = interface.enabled = interface.running = true;
  interface.mtu_bytes = 1500;
  for (const std::string& text : addresses)
    interface.addresses.push_back({address_of(text), kPrefixBits});
  return interface;
}

std::vector<std::string> gids(const device::PortConfig& port) {
  std::vector<std::string> texts;
  for (const device::GidEntry& entry : port.gids) texts.push_back(to_text(IpAddress(entry.gid)));
  return texts;
}

std::vector<int> network_bits(const device::PortConfig& port) {
  std::vector<int> bits;
  for (const device::GidEntry& entry : port.gids) bits.push_back(entry.network_bits);
  return bits;
}

using Bits = std::vector<int>;
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the path MTU is the largest that fits with all headers") {
  CHECK(path_mtu_bytes(9000) == 4096);
  CHECK(path_mtu_bytes(4192) == 4096);
  CHECK(path_mtu_bytes(4191) == 2048);
  CHECK(path_mtu_bytes(1500) == 1024);
  CHECK(path_mtu_bytes(1119) == 512);
  CHECK(path_mtu_bytes(68) == 256);
}

TEST_CASE("the path MTU leaves room for what packets bear behind their payload") {
  CHECK(path_mtu_bytes(4192, 8) == 4096);
  CHECK(path_mtu_bytes(4192, 9) == 2048);
  device::PortConfig port;
  port.trailer_bytes = 92;
  dpdk_io::KernelInterface interface = interface_with({"10.0.0.1"});
  interface.mtu_bytes = 4200;
  CHECK(describe_interface_port({}, interface).mtu_bytes == 4096);
  CHECK(describe_interface_port(port, interface).mtu_bytes == 2048);
  CHECK(describe_ethdev_port(port, {}, 4200, {}, true).mtu_bytes == 2048);
}

TEST_CASE("sockets send no trailer, so that none takes room") {
  device::PortConfig port;
  port.trailer_bytes = 92;
  dpdk_io::KernelInterface interface = interface_with({"10.0.0.1"});
  interface.mtu_bytes = 4200;
  const UdpAddress address{interface.addresses.front().address, interface};
  CHECK(describe_udp_port(port, {&address, 1}).mtu_bytes == 4096);
}

TEST_CASE("the link-local GID comes first, then one for each address") {
  const device::PortConfig port = describe_interface_port(
      {}, interface_with({"10.0.0.1", "fd00::1", "fe80::11:22ff:fe33:4455"}));
  CHECK(gids(port) == Texts{"fe80::11:22ff:fe33:4455", "10.0.0.1", "fd00::1"});
  CHECK(network_bits(port) == Bits{64, 96 + kPrefixBits, kPrefixBits});
  CHECK(port.interface_index == 7);
  CHECK(port.active);
  CHECK(port.mtu_bytes == 1024);
  CHECK(port.netdev_name == "eth0");
  CHECK(port.udp_source_port == 0);
}

TEST_CASE("a GID keeps its index while others come and go") {
  device::PortConfig port =
      describe_interface_port({}, interface_with({"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
  port = describe_interface_port(port, interface_with({"10.0.0.1", "10.0.0.3"}));
  CHECK(gids(port) == Texts{"fe80::11:22ff:fe33:4455", "10.0.0.1", "::", "10.0.0.3"});
  port =
      describe_interface_port(port, interface_with({"10.0.0.1", "10.0.0.3", "fd00::1", "fd00::2"}));
  CHECK(gids(port) ==
        Texts{"fe80::11:22ff:fe33:4455", "10.0.0.1", "fd00::1", "10.0.0.3", "fd00::2"});
}

TEST_CASE("a GID's network follows the address's; one without a place in the table has none") {
  dpdk_io::KernelInterface interface = interface_with({"10.0.0.1", "10.0.0.2"});
  device::PortConfig port = describe_interface_port({}, interface);
  interface.addresses = {{address_of("10.0.0.1"), 8}};
  port = describe_interface_port(port, interface);
  CHECK(network_bits(port) == Bits{64, 96 + 8, 128});
}

TEST_CASE("another MAC makes another link-local GID at the same index") {
  device::PortConfig port = describe_interface_port({}, interface_with({"10.0.0.1"}));
  dpdk_io::KernelInterface changed = interface_with({"10.0.0.1"});
  changed.mac[5] = 0x66;
  port = describe_interface_port(port, changed);
  CHECK(gids(port) == Texts{"fe80::11:22ff:fe33:4466", "10.0.0.1"});
}

TEST_CASE("an interface without carrier, and one that is gone, make a port that is down") {
  dpdk_io::KernelInterface interface = interface_with({"10.0.0.1"});
  const device::PortConfig up = describe_interface_port({}, interface);
  interface.running = false;
  CHECK_FALSE(describe_interface_port(up, interface).active);
  const device::PortConfig gone = describe_interface_port(up, std::nullopt);
  CHECK_FALSE(gone.active);
  CHECK(gids(gone) == gids(up));
}

TEST_CASE("a port on UDP sockets has the addresses it was given, and one UDP source port") {
  const std::vector<UdpAddress> addresses = {{address_of("10.0.0.1"), interface_with({"10.0.0.1"})},
                                             {address_of("fd00::1"), std::nullopt}};
  const device::PortConfig port = describe_udp_port({}, addresses);
  CHECK(gids(port) == Texts{"10.0.0.1", "::"});
  CHECK(network_bits(port) == Bits{96 + kPrefixBits, 128});
  CHECK(port.active);
  CHECK(port.udp_source_port == 4791);
  CHECK(port.mtu_bytes == 1024);
  CHECK(port.mac == mac_standing_for(address_of("10.0.0.1")));
  CHECK((port.mac[0] & 1) == 0);
  CHECK(mac_standing_for(address_of("fd00:0:0:1::5")) !=
        mac_standing_for(address_of("fd00:0:0:2::5")));
  CHECK(mac_standing_for_peer(port, address_of("10.0.0.2")) ==
        mac_standing_for(address_of("10.0.0.2")));
  CHECK(mac_standing_for_peer(port, address_of("fd00::a00:1")) != port.mac);
  CHECK_FALSE(describe_udp_port(port, {&addresses[1], 1}).active);
}

TEST_CASE(
    "a port on a device of DPDK has the addresses it is given, or those it would have on a "
    "switch") {
  const device::PortConfig on_a_switch = device::default_config(1).port;
  const dpdk_io::IpSettings ip = default_network(on_a_switch);
  REQUIRE(ip.addresses.size() == 2);
  CHECK(ip.addresses[0] == dpdk_io::LinkAddress{address_of("10.77.0.2"), 24});
  CHECK(ip.addresses[1] == dpdk_io::LinkAddress{address_of("fd52:4f43:4500::2"), 64});
  const MacAddress mac = {2, 0, 0, 0, 0, 9};
  const device::PortConfig port = describe_ethdev_port(on_a_switch, mac, 1500, ip, false);
  CHECK(gids(port) == Texts{"fe80::ff:fe00:9", "10.77.0.2", "fd52:4f43:4500::2"});
  CHECK(network_bits(port) == Bits{64, 96 + 24, 64});
  CHECK(port.mtu_bytes == 1024);
  CHECK(port.mac == mac);
  CHECK_FALSE(port.active);
  CHECK(describe_ethdev_port(port, mac, 4200, ip, true).active);
}

}  // namespace rocemu::daemon
