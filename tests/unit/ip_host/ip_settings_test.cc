#include "dpdk_io/ip_host/ip_settings.h"

#include <catch2/catch.hpp>

#include "tests/unit/ip_host/sample_host.h"

namespace rocemu::dpdk_io {

TEST_CASE("a network has the addresses of its prefix, less its own two") {
  CHECK(is_on_link({ip("10.0.0.1"), 24}, ip("10.0.0.2")));
  CHECK(is_on_link({ip("10.0.0.1"), 20}, ip("10.0.15.2")));
  CHECK_FALSE(is_on_link({ip("10.0.0.1"), 20}, ip("10.0.16.2")));
  CHECK_FALSE(is_on_link({ip("10.0.0.1"), 24}, ip("10.0.0.0")));
  CHECK_FALSE(is_on_link({ip("10.0.0.1"), 24}, ip("10.0.0.255")));
  CHECK(is_on_link({ip("10.0.0.0"), 31}, ip("10.0.0.1")));
  CHECK_FALSE(is_on_link({ip("10.0.0.1"), 32}, ip("10.0.0.2")));
  CHECK(is_on_link({ip("fd00::1"), 64}, ip("fd00::ffff:ffff:ffff:ffff")));
  CHECK_FALSE(is_on_link({ip("fd00::1"), 65}, ip("fd00::8000:0:0:1")));
  CHECK_FALSE(is_on_link({ip("fd00::1"), 64}, ip("10.0.0.1")));
}

TEST_CASE("a station's address is neither a group's nor nobody's") {
  for (const char* text : {"10.0.0.1", "223.255.255.1", "fd00::1", "fe80::1", "2001:db8::"})
    CHECK(is_unicast(ip(text)));
  for (const char* text :
       {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1"})
    CHECK_FALSE(is_unicast(ip(text)));
}

TEST_CASE("the next hop is the destination, a gateway, or nobody") {
  const IpSettings settings = sample_settings();
  CHECK(next_hop(settings, ip("10.0.0.7")) == ip("10.0.0.7"));
  CHECK(next_hop(settings, ip("10.0.1.7")) == ip("10.0.0.254"));
  CHECK(next_hop(settings, ip("fd00::7")) == ip("fd00::7"));
  CHECK(next_hop(settings, ip("fd01::7")) == ip("fd00::fe"));
  CHECK(next_hop(settings, ip("fe80::7")) == ip("fe80::7"));
  CHECK_FALSE(next_hop(settings, ip("10.0.0.255")));
  CHECK_FALSE(next_hop(settings, ip("239.0.0.1")));
  CHECK_FALSE(next_hop({{{ip("10.0.0.1"), 24}}, {}}, ip("10.0.1.7")));
}

TEST_CASE("one speaks to a neighbour from the address in its network") {
  const IpSettings settings = {{{ip("10.0.0.1"), 24}, {ip("10.1.0.1"), 24}, {ip("fd00::1"), 64}},
                               {}};
  CHECK(source_towards(settings, ip("10.1.0.9")) == ip("10.1.0.1"));
  CHECK(source_towards(settings, ip("192.0.2.1")) == ip("10.0.0.1"));
  CHECK(source_towards(settings, ip("fe80::9")) == ip("fd00::1"));
  CHECK_FALSE(source_towards({{{ip("10.0.0.1"), 24}}, {}}, ip("fe80::9")));
}

TEST_CASE("addresses made of others") {
  CHECK(link_local_address(kOwnMac) == ip("fe80::ff:fe00:1"));
  CHECK(solicited_node_group(ip("fd00::12:3456")) == ip("ff02::1:ff12:3456"));
  CHECK(group_mac(ip("239.129.2.3")) == MacAddress{1, 0, 0x5e, 1, 2, 3});
}

}  // namespace rocemu::dpdk_io
