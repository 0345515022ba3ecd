// Which frames flows get, and how receive side scaling spreads them.
#include <catch2/catch.hpp>
#include <vector>

#include "emulator/transport/flow_table.h"

namespace rocemu::transport {

namespace {

std::vector<std::byte> as_bytes(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// TCP over IPv4 from 66.9.149.187:2794 to 161.142.100.80:1766.
std::vector<std::byte> sample() {
  return as_bytes({1,    2,   3,   4,   5,   6,  7,    8,    9,    10,   11, 12, 0x08, 0x00,
                   0x45, 0,   0,   40,  0,   0,  0x40, 0,    64,   6,    0,  0,  66,   9,
                   149,  187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6, 0,  0,  0,    0});
}

Flow flow_to(uint32_t qpn, FlowKind kind = FlowKind::normal, uint16_t priority = 0) {
  Flow flow;
  flow.kind = kind;
  flow.priority = priority;
  flow.receivers.qpns = {wire::Qpn{qpn}};
  return flow;
}

std::vector<uint32_t> receivers(FlowTable& table, std::span<const std::byte> frame, bool& taken) {
  std::vector<uint32_t> found;
  taken =
      table.steer(frame, [&](wire::Qpn qpn, const Flow&, uint64_t) { found.push_back(qpn.value); });
  return found;
}

}  // namespace

TEST_CASE("Fields are where they belong, with and without a VLAN tag, however short the frame") {
  std::vector<std::byte> frame = sample();
  wire::FrameFields fields = wire::frame_fields(frame);
  CHECK(fields.destination_mac == std::array<uint8_t, 6>{1, 2, 3, 4, 5, 6});
  CHECK(fields.ether_type == std::array<uint8_t, 2>{8, 0});
  CHECK(fields.ip_version == 4);
  CHECK(fields.protocol == 6);
  CHECK(fields.source_port == std::array<uint8_t, 2>{0x0a, 0xea});
  CHECK(fields.tagged == 0);
  const std::vector<std::byte> tag = as_bytes({0x81, 0, 0xa1, 0x23});
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  const wire::FrameFields tagged = wire::frame_fields(frame);
  CHECK(tagged.vlan_tci == std::array<uint8_t, 2>{0xa1, 0x23});
  fields.tagged = 1;
  fields.vlan_tci = tagged.vlan_tci;
  CHECK(tagged == fields);
  for (size_t bytes = 0; bytes < frame.size(); ++bytes)
    wire::frame_fields(std::vector(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(bytes)));
  frame[18] = std::byte{0x4f};  // a header of 60 bytes, which the frame does not have
  CHECK(wire::frame_fields(frame).source_port == std::array<uint8_t, 2>{});
}

namespace {

constexpr int kHopByHop = 0, kUdp = 17, kTcp = 6, kRouting = 43, kFragment = 44, kOptions = 60;

// UDP to port 4791 over IPv6, behind extension headers of 8 bytes each. `place`: a fragment's
// offset and whether more follow.
std::vector<std::byte> over_ipv6(const std::vector<int>& headers, int last = kUdp, int place = 1) {
  std::vector<int> frame(12, 2);
  const auto add = [&](const std::vector<int>& part) {
    frame.insert(frame.end(), part.begin(), part.end());
  };
  std::vector<int> next = headers;
  next.push_back(last);
  add({0x86, 0xdd, 0x60, 0, 0, 0, 0, static_cast<int>(headers.size()) * 8 + 8, next[0], 64});
  add(std::vector<int>(32, 1));
  for (size_t i = 0; i < headers.size(); ++i)
    add({next[i + 1], 0, 0, headers[i] == kFragment ? place : 0, 0, 0, 0, 0});
  add({0xc0, 0, 0x12, 0xb7, 0, 8, 0, 0});
  return as_bytes(frame);
}

std::vector<std::byte> tagged(std::vector<std::byte> frame, int type) {
  const std::vector<std::byte> tag = as_bytes({type >> 8, type & 0xff, 0, 5});
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

}  // namespace

TEST_CASE("What some receiver may take for RoCE is known behind tags and extension headers") {
  CHECK_FALSE(wire::may_be_roce(sample()));
  CHECK(wire::may_be_roce(over_ipv6({})));
  CHECK_FALSE(wire::may_be_roce(over_ipv6({}, kTcp)));
  CHECK(wire::may_be_roce(over_ipv6({kHopByHop, kRouting, kOptions, kFragment})));
  CHECK_FALSE(wire::may_be_roce(over_ipv6({kOptions, kFragment}, kTcp)));
  CHECK_FALSE(wire::may_be_roce(over_ipv6({kFragment}, kUdp, 8)));  // not the first
  CHECK(wire::may_be_roce(tagged(over_ipv6({}), 0x8100)));
  CHECK(wire::may_be_roce(tagged(tagged(over_ipv6({kOptions}), 0x8100), 0x88a8)));
  std::vector<std::byte> ipv4 = sample();
  ipv4[23] = std::byte{kUdp};
  CHECK_FALSE(wire::may_be_roce(ipv4));
  ipv4[36] = std::byte{0x12}, ipv4[37] = std::byte{0xb7};
  CHECK(wire::may_be_roce(ipv4));
  CHECK(wire::may_be_roce(tagged(ipv4, 0x88a8)));
  const std::vector<std::byte> whole = tagged(over_ipv6({kOptions, kFragment}), 0x8100);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    wire::may_be_roce(std::vector(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes)));
  // The headers go on in the next fragment.
  CHECK(wire::may_be_roce(std::span(whole).first(whole.size() - 12)));
}

TEST_CASE("RoCE of another VLAN is no port's, though flows have let it in") {
  FlowTable table;
  Flow sniffer = flow_to(7, FlowKind::sniffer);
  Flow rest = flow_to(5, FlowKind::all_default);
  for (Flow* flow : {&rest, &sniffer}) table.add(*flow);
  bool taken = true;
  CHECK(receivers(table, over_ipv6({}), taken) == std::vector<uint32_t>{7});
  CHECK_FALSE(taken);
  CHECK(receivers(table, tagged(over_ipv6({}), 0x8100), taken) == std::vector<uint32_t>{7});
  CHECK(taken);
}

TEST_CASE("A frame goes to the best priority, else to the default flows, and to sniffers besides") {
  FlowTable table;
  Flow worse = flow_to(1, FlowKind::normal, 5);
  Flow better = flow_to(2, FlowKind::normal, 3);
  Flow as_good = flow_to(3, FlowKind::normal, 3);
  Flow other = flow_to(4);
  Flow rest = flow_to(5, FlowKind::all_default);
  Flow groups = flow_to(6, FlowKind::multicast_default);
  Flow sniffer = flow_to(7, FlowKind::sniffer, 9);
  other.mask.protocol = 0xff;
  other.value.protocol = 17;
  for (Flow* flow : {&worse, &better, &as_good, &other, &rest, &groups, &sniffer}) table.add(*flow);
  const std::vector<std::byte> frame = sample();  // to a group
  bool taken = false;
  CHECK(receivers(table, frame, taken) == std::vector<uint32_t>{2, 3, 7});
  CHECK(taken);
  for (const Flow* flow : {&worse, &better, &as_good}) table.remove(*flow);
  CHECK(receivers(table, frame, taken) == std::vector<uint32_t>{5, 6, 7});
  std::vector<std::byte> roce = frame;
  roce[23] = std::byte{17};
  roce[36] = std::byte{4791 >> 8};
  roce[37] = std::byte{4791 & 0xff};
  CHECK(receivers(table, roce, taken) == std::vector<uint32_t>{7});
  CHECK_FALSE(taken);
}

// The hashes that "Verifying the RSS Hash Calculation" of Microsoft's documentation gives.
TEST_CASE("The hash of receive side scaling is that of others") {
  RssHash hash;
  hash.key = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
              0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
              0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
  const wire::FrameFields fields = wire::frame_fields(sample());
  hash.fields = rss_field::kSourceIpv4 | rss_field::kDestinationIpv4;
  CHECK(hash.of(fields) == 0x323e8fc2);
  hash.fields |= rss_field::kSourcePortTcp | rss_field::kDestinationPortTcp;
  CHECK(hash.of(fields) == 0x51ccc178);
  hash.fields = 0;
  CHECK(hash.of(fields) == 0);
}

}  // namespace rocemu::transport
