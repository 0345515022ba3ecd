// What anybody can send.
#include <catch2/catch.hpp>

#include "base/time.h"
#include "dpdk_io/ip_host/arp.h"
#include "dpdk_io/ip_host/neighbour_discovery.h"
#include "tests/unit/ip_host/sample_host.h"

namespace rocemu::dpdk_io {
namespace {

IpAddress numbered(unsigned number) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, static_cast<uint8_t>(number >> 8),
           static_cast<uint8_t>(number)}};
}

}  // namespace

TEST_CASE("a frame that was cut, or in which a bit was changed, does no harm") {
  for (const std::string_view hex : {kArpRequest, kSolicitation, kAdvertisement, kPing, kPing6}) {
    const Frame whole = from_hex(hex);
    for (size_t length = 0; length < whole.size(); ++length) {
      IpHost host(kOwnMac, sample_settings(), 1);
      const Frame cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      host.on_frame(0, cut);
      CHECK(sent_by(host).empty());
    }
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      IpHost host(kOwnMac, sample_settings(), 1);
      Frame changed = whole;
      changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      host.on_frame(0, changed);
      CHECK(sent_by(host).size() <= 1);
    }
  }
}

TEST_CASE("a checksum that is wrong is no answer's") {
  for (const std::string_view hex : {kSolicitation, kPing, kPing6}) {
    IpHost host(kOwnMac, sample_settings(), 1);
    Frame damaged = from_hex(hex);
    damaged.back() ^= 1;
    host.on_frame(0, damaged);
    CHECK(sent_by(host).empty());
  }
}

TEST_CASE("answers nobody asked for fill nothing") {
  IpHost host(kOwnMac, {{{ip("10.0.0.1"), 8}}, {}}, 1);
  for (unsigned i = 2; i < 60'000; ++i) {
    host.on_frame(0, build_arp_reply(kPeerMac, numbered(i), kOwnMac, ip("10.0.0.1")));
    host.on_frame(0, build_arp_request(kPeerMac, numbered(i), numbered(i)));
  }
  CHECK(host.neighbours() == 0);
  CHECK(sent_by(host).empty());
}

TEST_CASE("a flood of questions gets so many answers a second") {
  IpHost host(kOwnMac, sample_settings(), 1);
  unsigned answers = 0;
  constexpr unsigned kFrames = 100'000;
  for (unsigned i = 0; i < kFrames; ++i) {
    const TimeNs now = TimeNs{i} * 10'000;  // one second in all
    host.on_frame(now, from_hex(kArpRequest));
    host.on_frame(now, from_hex(kPing));
    answers += static_cast<unsigned>(sent_by(host).size());
  }
  CHECK(answers >= 10'000);
  CHECK(answers <= 11'100);
  CHECK(host.stats().not_answered == 2 * kFrames - answers);
}

TEST_CASE("what waits to be sent is bounded") {
  IpHost host(kOwnMac, {{{ip("10.0.0.1"), 8}}, {}}, 1);
  for (unsigned i = 0; i < 10'000; ++i) {
    host.on_frame(TimeNs{i} * kSecond, from_hex(kArpRequest));
    host.on_link_up(TimeNs{i} * kSecond);
  }
  CHECK(sent_by(host).size() <= IpHost::kMaxWaiting);
}

TEST_CASE("a neighbour that has no MAC, or a group's, is none") {
  IpHost host(kOwnMac, sample_settings(), 1);
  host.resolve(0, ip("10.0.0.2"));
  sent_by(host);
  for (const MacAddress& mac : {MacAddress{}, kBroadcastMac, MacAddress{1, 0, 0x5e, 0, 0, 1}}) {
    Frame reply = build_arp_reply(mac, ip("10.0.0.2"), kOwnMac, ip("10.0.0.1"));
    std::copy(kPeerMac.begin(), kPeerMac.end(), &reply[6]);
    host.on_frame(0, reply);
    CHECK(host.resolve(0, ip("10.0.0.2")).kind == IpHost::Answer::Kind::not_yet);
  }
}

TEST_CASE("neighbour discovery that has crossed a router is not believed") {
  IpHost host(kOwnMac, sample_settings(), 1);
  Frame frame = from_hex(kSolicitation);
  frame[kEthernetBytes + 7] = 254;
  host.on_frame(0, frame);
  CHECK(sent_by(host).empty());
}

TEST_CASE("an option of length zero ends the message") {
  Frame message = {135, 0, 0, 0, 0, 0, 0, 0};
  append(message, ip("fd00::1").bytes);
  append(message, Frame{1, 0, 2, 0, 0, 0, 0, 2});
  const IpAddress group = solicited_node_group(ip("fd00::1"));
  IpHost host(kOwnMac, sample_settings(), 1);
  host.on_frame(0,
                build_ip({kPeerMac, group_mac(group), ip("fd00::2"), group, kIpProtocolIcmpv6, 255},
                         message));
  CHECK(sent_by(host).empty());
}

TEST_CASE("an advertisement that does not override changes no MAC") {
  IpHost host(kOwnMac, sample_settings(), 1);
  host.resolve(0, ip("fd00::2"));
  host.on_frame(0, build_advertisement(kPeerMac, ip("fd00::2"), kOwnMac, ip("fd00::1")));
  REQUIRE(host.resolve(0, ip("fd00::2")).mac == kPeerMac);
  constexpr MacAddress kOther = {2, 0, 0, 0, 0, 9};
  Frame message = {136, 0, 0, 0, 0x40, 0, 0, 0};
  append(message, ip("fd00::2").bytes);
  append(message, Frame{2, 1});
  append(message, kOther);
  host.on_frame(0, build_ip({kOther, kOwnMac, ip("fd00::2"), ip("fd00::1"), kIpProtocolIcmpv6, 255},
                            message));
  CHECK(host.resolve(0, ip("fd00::2")).mac == kPeerMac);
}

}  // namespace rocemu::dpdk_io
