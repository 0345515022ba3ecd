#include "dpdk_io/ip_host/ip_host.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/time.h"
#include "dpdk_io/ip_host/arp.h"
#include "dpdk_io/ip_host/neighbour_discovery.h"
#include "tests/unit/ip_host/sample_host.h"

namespace rocemu::dpdk_io {
namespace {

using Kind = IpHost::Answer::Kind;

std::vector<Frame> answers_to(IpHost& host, std::string_view hex, TimeNs now = kSecond) {
  host.on_frame(now, from_hex(hex));
  return sent_by(host);
}

// All frames of either are handed to the other, until none is sent.
void exchange(TimeNs now, IpHost& a, IpHost& b) {
  while (a.wants_to_send() || b.wants_to_send()) {
    for (const Frame& frame : sent_by(a)) b.on_frame(now, frame);
    for (const Frame& frame : sent_by(b)) a.on_frame(now, frame);
  }
}

}  // namespace

TEST_CASE("questions for an address of the host are answered") {
  IpHost host(kOwnMac, sample_settings(), 1);
  CHECK(answers_to(host, kArpRequest) == Frames{padded(from_hex(kArpReply))});
  CHECK(answers_to(host, kSolicitation) == Frames{from_hex(kAdvertisement)});
  CHECK(host.stats().neighbour_answers == 2);
  CHECK(host.neighbours() == 0);  // nobody asked for the one who asked
}

TEST_CASE("ping is answered, with what was in it") {
  IpHost host(kOwnMac, sample_settings(), 1);
  CHECK(answers_to(host, kPing) == Frames{padded(from_hex(kPong))});
  CHECK(answers_to(host, kPing6) == Frames{from_hex(kPong6)});
  CHECK(host.stats().echo_answers == 2);
}

TEST_CASE("who finds out whether an address of the host is free is told that it is not") {
  IpHost host(kOwnMac, sample_settings(), 1);
  constexpr std::string_view kProbe =
      "3333ff00000102000000000286dd6000000000183aff00000000000000000000000000000000ff02000000000000"
      "000000"
      "01ff00000187007da500000000fd000000000000000000000000000001";
  constexpr std::string_view kToAll =
      "33330000000102000000000186dd6000000000203afffd000000000000000000000000000001ff02000000000000"
      "000000"
      "000000000188005a9b20000000fd0000000000000000000000000000010201020000000001";
  CHECK(answers_to(host, kProbe) == Frames{from_hex(kToAll)});
  const auto conflict = host.take_conflict();
  REQUIRE(conflict);
  CHECK(conflict->address == ip("fd00::1"));
  CHECK(conflict->mac == kPeerMac);
  CHECK_FALSE(host.take_conflict());
}

TEST_CASE("what is for others gets no answer") {
  IpHost host(kOwnMac, {{{ip("10.0.0.9"), 24}, {ip("fd00::9"), 64}}, {}}, 1);
  for (const std::string_view frame : {kArpRequest, kSolicitation, kPing, kPing6})
    CHECK(answers_to(host, frame).empty());
  IpHost other({2, 0, 0, 0, 0, 7}, sample_settings(), 1);
  CHECK(answers_to(other, kPing).empty());  // another station's MAC
}

TEST_CASE("two hosts find each other") {
  IpHost a(kOwnMac, sample_settings(), 1);
  IpHost b(kPeerMac, {{{ip("10.0.0.2"), 24}, {ip("fd00::2"), 64}}, {}}, 2);
  for (const char* text : {"10.0.0.2", "fd00::2", "fe80::ff:fe00:2"}) {
    INFO(text);
    CHECK(a.resolve(kSecond, ip(text)).kind == Kind::not_yet);
    exchange(kSecond, a, b);
    const IpHost::Answer answer = a.resolve(kSecond, ip(text));
    CHECK(answer.kind == Kind::found);
    CHECK(answer.mac == kPeerMac);
  }
  CHECK(a.next_deadline() == kNever);
}

TEST_CASE(
    "a question is asked three times, a second apart, and then no more until somebody wants to "
    "know") {
  IpHost host(kOwnMac, sample_settings(), 1);
  unsigned asked = 0;
  CHECK(host.resolve(0, ip("10.0.0.2")).kind == Kind::not_yet);
  for (TimeNs now = 0; now < 10 * kSecond; now += kSecond / 10) {
    if (host.next_deadline() <= now) host.on_timeout(now);
    for (const Frame& frame : sent_by(host)) {
      const auto message = parse_arp(frame);
      REQUIRE(message);
      CHECK(message->request);
      CHECK(message->sender == ip("10.0.0.1"));
      CHECK(message->target == ip("10.0.0.2"));
      CHECK(destination_of(frame) == kBroadcastMac);
      ++asked;
    }
    // Looking while it is asked for asks no more often.
    if (now < 2 * kSecond) host.resolve(now, ip("10.0.0.2"));
  }
  CHECK(asked == 3);
  CHECK(host.next_deadline() == kNever);
  host.resolve(10 * kSecond, ip("10.0.0.2"));
  CHECK(sent_by(host).size() == 1);
}

TEST_CASE("an answer is good for a minute, and a neighbour's new MAC is learned") {
  IpHost host(kOwnMac, sample_settings(), 1);
  host.resolve(0, ip("10.0.0.2"));
  host.on_frame(1, build_arp_reply(kPeerMac, ip("10.0.0.2"), kOwnMac, ip("10.0.0.1")));
  CHECK(host.resolve(59 * kSecond, ip("10.0.0.2")).kind == Kind::found);
  constexpr MacAddress kNewMac = {2, 0, 0, 0, 0, 3};
  host.on_frame(59 * kSecond, build_arp_request(kNewMac, ip("10.0.0.2"), ip("10.0.0.2")));
  CHECK(host.resolve(118 * kSecond, ip("10.0.0.2")).mac == kNewMac);
  CHECK(host.resolve(119 * kSecond, ip("10.0.0.2")).kind == Kind::not_yet);
}

TEST_CASE("after the link has been down, neighbours are asked for anew") {
  IpHost host(kOwnMac, sample_settings(), 1);
  host.resolve(0, ip("10.0.0.2"));
  host.on_frame(1, build_arp_reply(kPeerMac, ip("10.0.0.2"), kOwnMac, ip("10.0.0.1")));
  REQUIRE(host.resolve(2, ip("10.0.0.2")).kind == Kind::found);
  host.on_link_up(kSecond);
  CHECK(host.resolve(kSecond, ip("10.0.0.2")).kind == Kind::not_yet);
}

TEST_CASE("where there is no way there is no question") {
  IpHost host(kOwnMac, {{{ip("10.0.0.1"), 24}}, {}}, 1);
  for (const char* text :
       {"10.0.1.2", "10.0.0.255", "10.0.0.0", "fd00::2", "127.0.0.1", "0.0.0.0"}) {
    INFO(text);
    CHECK(host.resolve(0, ip(text)).kind == Kind::unreachable);
  }
  CHECK(sent_by(host).empty());
  CHECK(host.resolve(0, ip("10.0.0.1")).mac == kOwnMac);
  CHECK(host.resolve(0, ip("239.1.2.3")).mac == MacAddress{1, 0, 0x5e, 1, 2, 3});
  CHECK(host.resolve(0, ip("ff0e::1:2")).mac == MacAddress{0x33, 0x33, 0, 1, 0, 2});
}

TEST_CASE("the rest of the world is behind the gateway") {
  IpHost host(kOwnMac, sample_settings(), 1);
  IpHost gateway(kPeerMac, {{{ip("10.0.0.254"), 24}, {ip("fd00::fe"), 64}}, {}}, 2);
  for (const char* text : {"192.0.2.1", "2001:db8::1"}) {
    CHECK(host.resolve(0, ip(text)).kind == Kind::not_yet);
    exchange(0, host, gateway);
    CHECK(host.resolve(0, ip(text)).mac == kPeerMac);
  }
}

TEST_CASE("a host announces its addresses twice, and its groups") {
  IpHost host(kOwnMac, sample_settings(), 1);
  CHECK(sent_by(host).empty());
  host.on_link_up(0);
  for (unsigned round = 0; round < 2; ++round) {
    unsigned arp = 0, advertisements = 0;
    for (const Frame& frame : sent_by(host)) {
      if (const auto message = parse_arp(frame)) {
        ++arp;
        CHECK(message->sender == message->target);
      } else if (const auto packet = parse_ip(frame)) {
        const auto neighbour = parse_neighbour_message(*packet);
        if (neighbour && neighbour->overriding && !neighbour->solicited) ++advertisements;
      }
    }
    CHECK(arp == 1);
    CHECK(advertisements == 2);  // the link-local address as well
    host.on_timeout(2 * kSecond);
  }
  CHECK(sent_by(host).empty());
  CHECK(host.next_deadline() == kNever);
}

TEST_CASE("two hosts with one address notice") {
  IpHost a(kOwnMac, {{{ip("10.0.0.1"), 24}}, {}}, 1);
  IpHost b(kPeerMac, {{{ip("10.0.0.1"), 24}}, {}}, 2);
  a.on_link_up(0);
  exchange(0, a, b);
  REQUIRE(b.take_conflict());
  CHECK(b.stats().conflicts > 0);
}

TEST_CASE("the MACs of all groups are let in") {
  IpHost host(kOwnMac, sample_settings(), 1);
  host.set_groups(0, {ip("239.1.2.3"), ip("ff0e::1:2"), ip("224.0.0.1")});
  const std::vector<MacAddress> macs = host.group_macs();
  const auto has = [&](const MacAddress& mac) { return std::ranges::count(macs, mac) == 1; };
  CHECK(has({1, 0, 0x5e, 1, 2, 3}));
  CHECK(has({0x33, 0x33, 0, 1, 0, 2}));
  CHECK(has({0x33, 0x33, 0xff, 0, 0, 1}));  // of neighbour discovery
  CHECK(has({0x33, 0x33, 0, 0, 0, 1}));     // all nodes
}

}  // namespace rocemu::dpdk_io
