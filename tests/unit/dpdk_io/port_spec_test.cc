#include "dpdk_io/spec/port_spec.h"

#include <catch2/catch.hpp>

namespace rocemu::dpdk_io {

TEST_CASE("each kind of port has its text, and comes back as that") {
  struct Expected {
    const char* text;
    PortKind kind;
    const char* back;
  };
  for (const Expected& expected :
       {Expected{"rocemu0=switch", PortKind::fabric, "switch"},
        Expected{"rocemu0=eth0", PortKind::interface, "eth0"},
        Expected{"rocemu0=if:switch", PortKind::interface, "switch"},
        Expected{"rocemu0=eth0.100", PortKind::interface, "eth0.100"},
        Expected{"rocemu0=udp:10.0.0.1", PortKind::udp, "udp:10.0.0.1"},
        Expected{"rocemu0=udp:10.0.0.1+fd00:0::1", PortKind::udp, "udp:10.0.0.1+fd00::1"},
        Expected{"rocemu0=vdev:net_tap0,iface=x", PortKind::vdev, "vdev:net_tap0,iface=x"},
        Expected{"rocemu0=pci:0000:01:00.0", PortKind::pci, "pci:0000:01:00.0"},
        Expected{"rocemu0=pci:AF:00.1,a=b@10.0.0.1", PortKind::pci,
                 "pci:0000:af:00.1,a=b@10.0.0.1/24"},
        Expected{"rocemu0=vdev:net_memif0,socket=/a@b@fd00:0::1/56+10.0.0.1,vlan=7,mtu=1500,"
                 "gateway=10.0.0.254+fd00::2",
                 PortKind::vdev,
                 "vdev:net_memif0,socket=/a@b@fd00::1/56+10.0.0.1/24,gateway=10.0.0.254+fd00::2,"
                 "vlan=7,mtu=1500"}}) {
    INFO(expected.text);
    const ParsedPort parsed = parse_port(expected.text);
    REQUIRE(parsed.assignment);
    CHECK(parsed.assignment->device == "rocemu0");
    CHECK(parsed.assignment->spec.kind == expected.kind);
    CHECK(to_text(parsed.assignment->spec) == expected.back);
  }
}

TEST_CASE("what is no port is refused with a word on what would be one") {
  for (const char* text : {"",
                           "rocemu0",
                           "=eth0",
                           "rocemu0=",
                           "rocemu0=a b",
                           "rocemu0=eth0,framecnt=1",
                           "rocemu0=an-interface-name",
                           "rocemu0=..",
                           "rocemu0=a/b",
                           "rocemu0=udp:",
                           "rocemu0=udp:10.0.0",
                           "rocemu0=udp:10.0.0.1+",
                           "rocemu0=udp:10.0.0.1+10.0.0.1",
                           "rocemu0=udp:eth0",
                           "rocemu0=vdev:",
                           "rocemu0=vdev:@10.0.0.1",
                           "rocemu0=vdev:net_tap0@",
                           "rocemu0=vdev:net_tap0@eth0",
                           "rocemu0=vdev:net_tap0@10.0.0.1/33",
                           "rocemu0=vdev:net_tap0@10.0.0.1/0",
                           "rocemu0=vdev:net_tap0@fd00::1/129",
                           "rocemu0=vdev:net_tap0@10.0.0.1+10.0.0.1",
                           "rocemu0=vdev:net_tap0@224.0.0.1",
                           "rocemu0=vdev:net_tap0@127.0.0.1",
                           "rocemu0=vdev:net_tap0@10.0.0.1,gateway=10.0.1.1",
                           "rocemu0=vdev:net_tap0@gateway=10.0.0.254",
                           "rocemu0=vdev:net_tap0@10.0.0.1,gateway=10.0.0.2+10.0.0.3",
                           "rocemu0=vdev:net_tap0@vlan=0",
                           "rocemu0=vdev:net_tap0@vlan=4095",
                           "rocemu0=vdev:net_tap0@mtu=70000",
                           "rocemu0=vdev:net_tap0@speed=1",
                           "rocemu0=pci:",
                           "rocemu0=pci:eth0",
                           "rocemu0=pci:00:00",
                           "rocemu0=pci:0000:00:00.0x"}) {
    INFO(text);
    const ParsedPort parsed = parse_port(text);
    CHECK_FALSE(parsed.assignment);
    CHECK(parsed.error.size() > 10);
  }
}

TEST_CASE("a port's network comes with its prefixes, which have defaults") {
  const ParsedPort parsed =
      parse_port("rocemu0=vdev:net_tap0,iface=x@10.0.0.1+fd00::1+10.1.0.1/16,vlan=5");
  REQUIRE(parsed.assignment);
  const PortSpec& spec = parsed.assignment->spec;
  CHECK(spec.name == "net_tap0,iface=x");
  REQUIRE(spec.ip.addresses.size() == 3);
  CHECK(spec.ip.addresses[0].prefix_bits == 24);
  CHECK(spec.ip.addresses[1].prefix_bits == 64);
  CHECK(spec.ip.addresses[2].prefix_bits == 16);
  CHECK(spec.vlan_id == 5);
  CHECK(spec.mtu_bytes == 0);
}

TEST_CASE("an IPv4 address is one however it is looked at") {
  const auto address = parse_ip_address("10.1.2.3");
  REQUIRE(address);
  CHECK(address->is_ipv4());
  CHECK(address == parse_ip_address("::ffff:10.1.2.3"));
  CHECK_FALSE(parse_ip_address("fe80::1")->is_ipv4());
  CHECK(parse_ip_address("fe80::1")->is_link_local_ipv6());
  CHECK(parse_ip_address("127.0.0.2")->is_loopback_ipv4());
}

}  // namespace rocemu::dpdk_io
