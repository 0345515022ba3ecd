#include <catch2/catch.hpp>
#include <vector>

#include "base/net/checksum.h"
#include "base/net/text.h"

namespace rocemu {
namespace {

IpAddress ip(const char* text) { return *parse_ip_address(text); }

constexpr MacAddress kMac = {2, 0, 0, 0, 0, 1};

TEST_CASE("an address is of one family, and is written as it is read") {
  for (const char* text : {"10.1.2.3", "fd00::1", "fe80::1"}) CHECK(to_text(ip(text)) == text);
  CHECK(ip("10.1.2.3") == ip("::ffff:10.1.2.3"));
  CHECK(ip("10.1.2.3").is_ipv4());
  CHECK(ip("10.1.2.3").ipv4() == Ipv4Address{10, 1, 2, 3});
  CHECK_FALSE(ip("fe80::1").is_ipv4());
  CHECK(same_family(ip("10.0.0.1"), ip("127.0.0.1")));
  CHECK_FALSE(same_family(ip("10.0.0.1"), ip("::1")));
  CHECK_FALSE(parse_ip_address("10.1.2"));
  CHECK_FALSE(parse_ip_address(""));
}

TEST_CASE("what an address is for is in its bits") {
  CHECK(ip("fe80::1").is_link_local_ipv6());
  CHECK(ip("febf::1").is_link_local_ipv6());
  CHECK_FALSE(ip("fec0::1").is_link_local_ipv6());
  CHECK(ip("127.0.0.2").is_loopback_ipv4());
  CHECK(is_multicast(ip("224.0.0.1")));
  CHECK(is_multicast(ip("239.255.0.1")));
  CHECK_FALSE(is_multicast(ip("240.0.0.1")));
  CHECK(is_multicast(ip("ff02::1")));
  CHECK_FALSE(is_multicast(ip("fe02::1")));
}

TEST_CASE("prefixes of any length are compared bit by bit") {
  CHECK(bits_equal(ip("fd00::1"), ip("ff00::1"), 6));
  CHECK_FALSE(bits_equal(ip("fd00::1"), ip("ff00::1"), 7));
  CHECK(bits_equal(ip("fd00::2"), ip("fd00::3"), 127));
  CHECK_FALSE(bits_equal(ip("fd00::2"), ip("fd00::3"), 128));
  CHECK(bits_equal(ip("fd00::2"), ip("fd00::2"), 128));
  CHECK(bits_equal(ip("::"), ip("ff00::"), 0));
}

TEST_CASE("MAC addresses make link-local addresses, and groups have MAC addresses") {
  CHECK(link_local_address(kMac) == ip("fe80::ff:fe00:1"));
  CHECK(group_mac(ip("239.129.2.3")) == MacAddress{1, 0, 0x5e, 1, 2, 3});
  CHECK(group_mac(ip("ff02::1:ff00:1")) == MacAddress{0x33, 0x33, 0xff, 0, 0, 1});
  CHECK(is_station(kMac));
  CHECK_FALSE(is_station(kBroadcastMac));
  CHECK_FALSE(is_station(MacAddress{}));
  CHECK(mac_at(kMac.data()) == kMac);
  CHECK(to_text(MacAddress{2, 0x52, 0x4f, 0x43, 0x45, 0}) == "02:52:4f:43:45:00");
}

TEST_CASE("the Internet checksum is that of RFC 1071") {
  // The example of its section 3.
  const std::vector<uint8_t> bytes = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  CHECK(sum16(bytes) == 0x2ddf0);
  CHECK(internet_checksum(sum16(bytes)) == 0x220d);
  CHECK(sum16(std::vector<uint8_t>{1, 2, 3}) == 0x102 + 0x300);
  CHECK(internet_checksum(0xffff) == 0);
  CHECK(internet_checksum(0x1fffe) == 0);
  CHECK(internet_checksum(0xffffffff) == 0);
  CHECK(internet_checksum(0) == 0xffff);
}

}  // namespace
}  // namespace rocemu
