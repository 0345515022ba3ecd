#include "tests/unit/wire/sample_frames.h"

#include "base/net/checksum.h"

namespace rocemu::wire::test {
namespace {

Gid gid(std::array<uint8_t, 16> bytes) { return Gid{bytes}; }

bool is_vlan(Network network) {
  return network == Network::ipv4_vlan || network == Network::ipv6_vlan;
}

Ip sample_ip(Network network) {
  Ip ip;
  ip.traffic_class = 0x6a;
  ip.hop_limit = 61;
  if (is_ipv4(network)) {
    ip.source = gid({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 17});
    ip.destination = gid({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 34});
    ip.identification = 0xbeef;
  } else {
    ip.source = gid({0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 2});
    ip.destination = gid({0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6});
    ip.flow_label = 0xa5c3e;
    ip.flags_fragment = 0;
  }
  return ip;
}

}  // namespace

bool is_ipv4(Network network) { return network == Network::ipv4 || network == Network::ipv4_vlan; }

FrameValues sample(Network network, uint8_t opcode, size_t payload_bytes) {
  FrameValues values;
  values.ethernet = {.destination = {2, 0x11, 0x22, 0x33, 0x44, 0x55},
                     .source = {2, 0x66, 0x77, 0x88, 0x99, 0xaa},
                     .vlan_tci = {}};
  if (is_vlan(network)) values.ethernet.vlan_tci = 0x6123;
  values.ip = sample_ip(network);
  values.udp = {.source_port = 0xc123, .destination_port = kRoceUdpPort, .checksum = 0x1d0f};
  values.ext.feth = {0x5, 2};
  values.ext.reth = {0x0123456789abcdef, RKey{0x89abcdef}, 0x13579bdf};
  values.ext.aeth = {0x63, 0xc0ffee};
  values.ext.atomic = {0xfedcba9876543210, RKey{0x76543210}, 0x1122334455667788,
                       0x99aabbccddeeff01};
  values.ext.atomic_original = 0xa1b2c3d4e5f60718;
  values.ext.deth = {0x80010000, Qpn{0xabcdef}};
  values.ext.xrc_srq = Qpn{0x5a5a01};
  values.ext.immediate = 0x2468ace0;
  values.ext.invalidate = RKey{0x0badcafe};

  if (!traits_of(opcode).payload) payload_bytes = 0;
  if (opcode == kCnpOpcode) payload_bytes = kCnpReservedBytes;
  for (size_t i = 0; i < payload_bytes; ++i)
    values.payload.push_back(static_cast<std::byte>(i * 37 + 11));
  values.bth = {.opcode = opcode,
                .solicited = true,
                .mig_req = true,
                .pad_bytes = static_cast<uint8_t>(-payload_bytes & 3),
                .version = 0,
                .pkey = 0x8123,
                .fecn = true,
                .becn = true,
                .reserved6 = 0x2d,
                .destination_qp = Qpn{0x123abc},
                .ack_request = true,
                .reserved7 = 0x5a,
                .psn = Psn(0xfedcba)};
  return values;
}

size_t l3_offset_bytes(Network network) {
  return kEthernetBytes + (is_vlan(network) ? kVlanTagBytes : 0);
}

size_t bth_offset_bytes(Network network) {
  return l3_offset_bytes(network) + (is_ipv4(network) ? kIpv4Bytes : kIpv6Bytes) + kUdpBytes;
}

void fix_ipv4_checksum(Frame& frame, Network network) {
  std::byte* const header = frame.data() + l3_offset_bytes(network);
  store_be16(header + 10, 0);
  store_be16(header + 10, internet_checksum(ipv4_header_sum(header)));
}

}  // namespace rocemu::wire::test
