// The IP host of a port on a device of DPDK: frames made up, or made by a well-behaved neighbour
// and then altered, with checksums that are made right again; programs that look for addresses and
// join groups; time that passes.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/net/checksum.h"
#include "base/net/text.h"
#include "base/time.h"
#include "dpdk_io/ip_host/arp.h"
#include "dpdk_io/ip_host/datagram_filter.h"
#include "dpdk_io/ip_host/ip_host.h"
#include "dpdk_io/ip_host/neighbour_discovery.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/expect.h"

namespace {

using namespace rocemu;
using namespace rocemu::dpdk_io;
using rocemu::fuzz::ByteSource;
using rocemu::fuzz::expect;

constexpr MacAddress kOwnMac = {2, 0, 0, 0, 0, 1};
constexpr MacAddress kPeerMac = {2, 0, 0, 0, 0, 2};
constexpr size_t kLongestFrame = 256;
constexpr TimeNs kTimes[] = {1, 1'000'000, 500'000'000, 1'000'000'000, 61'000'000'000};

IpAddress ip(const char* text) { return parse_ip_address(text).value(); }

IpAddress pick_address(ByteSource& input) {
  static const std::array<IpAddress, 16> addresses = {
      ip("10.0.0.1"),    ip("10.0.0.2"),  ip("10.0.0.3"),        ip("10.0.0.254"),
      ip("10.0.0.255"),  ip("192.0.2.1"), ip("239.1.2.3"),       ip("224.0.0.1"),
      ip("fd00::1"),     ip("fd00::2"),   ip("fe80::ff:fe00:1"), ip("fe80::ff:fe00:2"),
      ip("2001:db8::1"), ip("ff0e::1"),   ip("ff02::1:ff00:1"),  ip("::")};
  return addresses[input.below(addresses.size())];
}

MacAddress pick_mac(ByteSource& input) {
  static constexpr MacAddress kMacs[] = {
      kOwnMac, kPeerMac, {2, 0, 0, 0, 0, 3}, kBroadcastMac, {0x33, 0x33, 0xff, 0, 0, 1}, {}};
  return input.pick(kMacs);
}

// So that what is behind the checksum is reached.
void make_checksum_right(Frame& frame) {
  if (frame.size() < kEthernetBytes + kIpv4Bytes) return;
  if (ether_type_of(frame) == kEtherTypeIpv4) {
    uint8_t* const header = &frame[kEthernetBytes];
    const size_t bytes = (header[0] & 0xfu) * 4u;
    if (bytes < kIpv4Bytes || kEthernetBytes + bytes > frame.size()) return;
    store_be16(header + 10, 0);
    store_be16(header + 10, internet_checksum(sum16({header, bytes})));
  }
  const auto packet = parse_ip(frame);
  if (!packet || packet->payload.size() < 4) return;
  const auto start = static_cast<size_t>(packet->payload.data() - frame.data());
  store_be16(&frame[start + kChecksumOffset], 0);
  const uint32_t before = packet->destination.is_ipv4()
                              ? 0
                              : pseudo_header_sum(packet->source, packet->destination,
                                                  packet->payload.size(), packet->protocol);
  store_be16(&frame[start + kChecksumOffset], internet_checksum(sum16(packet->payload, before)));
}

Frame message_frame(ByteSource& input) {
  static constexpr uint8_t kProtocols[] = {kIpProtocolIcmp, kIpProtocolIgmp, kIpProtocolIcmpv6,
                                           kIpProtocolUdp};
  static constexpr uint8_t kTypes[] = {0, 8, 0x11, 0x16, 0x22, 128, 130, 131, 135, 136, 143};
  static constexpr uint8_t kHopLimits[] = {1, 64, 255};
  IpHeader header{pick_mac(input), pick_mac(input), pick_address(input), pick_address(input)};
  header.protocol = input.pick(kProtocols);
  header.hop_limit = input.pick(kHopLimits);
  header.router_alert = input.flag();
  Frame message = {input.pick(kTypes), 0, 0, 0};
  if (input.flag()) {  // what neighbour discovery has
    append(message, Frame(4));
    append(message, pick_address(input).bytes);
  }
  for (uint32_t left = input.below(48); left != 0; --left) message.push_back(input.u8());
  return build_ip(header, message);
}

// As a router asks for groups: in either version of IGMP or MLD.
Frame query_frame(ByteSource& input) {
  const bool ipv6 = input.flag();
  const bool old = input.flag();
  Frame message = {ipv6 ? uint8_t{130} : uint8_t{0x11}, ipv6 ? uint8_t{0} : input.u8(), 0, 0};
  message.resize(ipv6 ? (old ? 24 : 28) : (old ? 8 : 12));
  if (ipv6) message[4] = input.u8();
  const IpAddress all = ip(ipv6 ? "ff02::1" : "224.0.0.1");
  return build_ip({kPeerMac,
                   {0x33, 0x33, 0, 0, 0, 1},
                   ip(ipv6 ? "fe80::2" : "10.0.0.2"),
                   all,
                   ipv6 ? kIpProtocolIcmpv6 : kIpProtocolIgmp,
                   1,
                   true},
                  message);
}

Frame make_frame(ByteSource& input) {
  switch (input.below(6)) {
    case 0: {
      Frame frame;
      for (size_t left = input.u16() % kLongestFrame; left != 0; --left)
        frame.push_back(input.u8());
      return frame;
    }
    case 1:
      return build_arp_request(pick_mac(input), pick_address(input), pick_address(input));
    case 2:
      return build_arp_reply(pick_mac(input), pick_address(input), pick_mac(input),
                             pick_address(input));
    case 3:
      return build_advertisement(pick_mac(input), pick_address(input), pick_mac(input),
                                 pick_address(input));
    case 4:
      return query_frame(input);
    default:
      return message_frame(input);
  }
}

void alter(ByteSource& input, Frame& frame) {
  for (uint32_t changes = input.below(4); changes != 0 && !frame.empty(); --changes)
    frame[input.u16() % frame.size()] = input.u8();
  if (input.flag()) frame.resize(input.u16() % (frame.size() + 16));
  if (input.flag()) make_checksum_right(frame);
}

void check_sent(const Frame& frame) {
  expect(frame.size() >= 60 && frame.size() <= kLongestFrame + 64, "a frame has Ethernet's length");
  expect(source_of(frame) == kOwnMac, "a frame bears the host's MAC");
  expect(destination_of(frame) != kOwnMac, "nothing is sent to the host itself");
  if (ether_type_of(frame) == kEtherTypeArp) {
    const auto message = parse_arp(frame);
    expect(message && message->sender_mac == kOwnMac, "ARP that can be read");
    return;
  }
  const auto packet = parse_ip(frame);
  expect(packet.has_value(), "a packet that can be read");
  expect(has_right_checksum(*packet), "with the right checksum");
  expect(is_unicast(packet->source), "from an address of the host");
}

class World {
 public:
  World() : host_(kOwnMac, settings(), 1) {}

  void step(ByteSource& input) {
    switch (input.below(8)) {
      case 0:
        return resolve(pick_address(input));
      case 1:
        now_ += input.pick(kTimes);
        return;
      case 2:
        return set_groups(input);
      case 3:
        return host_.on_link_up(now_);
      default:
        return receive(input);
    }
  }

  void settle() {
    for (unsigned rounds = 0; host_.next_deadline() <= now_; ++rounds) {
      expect(rounds < 4, "what is due is done");
      host_.on_timeout(now_);
    }
    size_t sent = 0;
    for (; host_.wants_to_send(); ++sent) check_sent(host_.next_frame());
    expect(sent <= IpHost::kMaxWaiting, "what waits is bounded");
    expect(host_.neighbours() <= known_.size(), "only who was asked for is known");
  }

 private:
  static IpSettings settings() {
    return {{{ip("10.0.0.1"), 24}, {ip("fd00::1"), 64}}, {ip("10.0.0.254"), ip("fd00::2")}};
  }

  void resolve(const IpAddress& address) {
    const IpHost::Answer answer = host_.resolve(now_, address);
    known_.insert(address);
    known_.insert(ip("10.0.0.254"));
    known_.insert(ip("fd00::2"));
    if (answer.kind != IpHost::Answer::Kind::found) return;
    expect(is_multicast(address) ? is_group(answer.mac) : is_station(answer.mac),
           "a MAC that suits the address");
  }

  void set_groups(ByteSource& input) {
    std::set<IpAddress> groups;
    for (uint32_t left = input.below(4); left != 0; --left) {
      const IpAddress group = pick_address(input);
      if (is_multicast(group)) groups.insert(group);
    }
    host_.set_groups(now_, groups);
    for (const MacAddress& mac : host_.group_macs()) expect(is_group(mac), "a group's MAC");
  }

  void receive(ByteSource& input) {
    Frame frame = make_frame(input);
    alter(input, frame);
    is_datagram_to(4791, frame);
    const uint64_t answers = host_.stats().neighbour_answers + host_.stats().echo_answers;
    host_.on_frame(now_, frame);
    expect(host_.stats().neighbour_answers + host_.stats().echo_answers <= answers + 1,
           "one answer to a frame at most");
  }

  IpHost host_;
  std::set<IpAddress> known_;  // that may be in the cache
  TimeNs now_ = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  ByteSource input(data, size_bytes);
  World world;
  while (!input.empty()) {
    world.step(input);
    world.settle();
  }
  return 0;
}
