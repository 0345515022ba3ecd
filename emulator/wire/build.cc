#include "emulator/wire/build.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "emulator/wire/icrc.h"

namespace rocemu::wire {
namespace {

constexpr size_t kUdpMaxBytes = 0xffff - kIpv4Bytes;

// The store_* functions return where the next header starts. Lengths and the IPv4 checksum stay
// zero: HeaderTemplate::write knows them.

std::byte* store_ethernet(std::byte* p, const Ethernet& ethernet, uint16_t ether_type) {
  std::memcpy(p, ethernet.destination.data(), ethernet.destination.size());
  std::memcpy(p + 6, ethernet.source.data(), ethernet.source.size());
  p += 12;
  if (ethernet.vlan_tci) {
    store_be16(p, kEtherTypeVlan);
    store_be16(p + 2, *ethernet.vlan_tci);
    p += kVlanTagBytes;
  }
  store_be16(p, ether_type);
  return p + 2;
}

std::byte* store_ipv4(std::byte* p, const Ip& ip) {
  store_u8(p, kIpv4VersionAndLength);
  store_u8(p + 1, ip.traffic_class);
  store_be16(p + 4, ip.identification);
  store_be16(p + 6, ip.flags_fragment);
  store_u8(p + 8, ip.hop_limit);
  store_u8(p + 9, kIpProtocolUdp);
  std::memcpy(p + 12, &ip.source.bytes[12], 4);
  std::memcpy(p + 16, &ip.destination.bytes[12], 4);
  return p + kIpv4Bytes;
}

std::byte* store_ipv6(std::byte* p, const Ip& ip) {
  store_be32(p, uint32_t{6} << 28 | uint32_t{ip.traffic_class} << 20 | (ip.flow_label & 0xfffff));
  store_u8(p + 6, kIpProtocolUdp);
  store_u8(p + 7, ip.hop_limit);
  std::memcpy(p + 8, ip.source.bytes.data(), ip.source.bytes.size());
  std::memcpy(p + 24, ip.destination.bytes.data(), ip.destination.bytes.size());
  return p + kIpv6Bytes;
}

std::byte* store_udp(std::byte* p, const Udp& udp) {
  store_be16(p, udp.source_port);
  store_be16(p + 2, udp.destination_port);
  store_be16(p + 6, udp.checksum);
  return p + kUdpBytes;
}

void store_bth(std::byte* p, const Bth& bth) {
  store_u8(p, bth.opcode);
  store_u8(p + 1, uint32_t{bth.solicited} << 7 | uint32_t{bth.mig_req} << 6 |
                      (bth.pad_bytes & 0x3u) << 4 | (bth.version & 0xfu));
  store_be16(p + 2, bth.pkey);
  store_u8(p + 4, uint32_t{bth.fecn} << 7 | uint32_t{bth.becn} << 6 | (bth.reserved6 & 0x3fu));
  store_be24(p + 5, bth.destination_qp.value);
  store_u8(p + 8, uint32_t{bth.ack_request} << 7 | (bth.reserved7 & 0x7fu));
  store_be24(p + 9, bth.psn.value());
}

// An eight-bit reserved field, zero, and 24 bits.
void store_reserved8_be24(std::byte* p, uint32_t value) { store_be32(p, value & 0xffffff); }

size_t transport_bytes_written(uint8_t opcode) {
  return std::max(transport_header_bytes(opcode), kBthBytes);
}

}  // namespace

HeaderTemplate::HeaderTemplate(const Ethernet& ethernet, const Ip& ip, const Udp& udp)
    : ipv4_(ip.source.is_ipv4_mapped() && ip.destination.is_ipv4_mapped()) {
  std::byte* const start = bytes_.data();
  std::byte* const l3 = store_ethernet(start, ethernet, ipv4_ ? kEtherTypeIpv4 : kEtherTypeIpv6);
  std::byte* const l4 = ipv4_ ? store_ipv4(l3, ip) : store_ipv6(l3, ip);
  std::byte* const end = store_udp(l4, udp);
  size_ = static_cast<uint8_t>(end - start);
  l3_offset_ = static_cast<uint8_t>(l3 - start);
  if (ipv4_) checksum_base_ = ipv4_header_sum(l3);
}

void HeaderTemplate::write(std::byte* frame, size_t after_udp_bytes, size_t surplus_bytes) const {
  const size_t udp_bytes = kUdpBytes + after_udp_bytes;
  assert(size_ != 0 && udp_bytes + surplus_bytes <= kUdpMaxBytes);
  // The compiler makes a few moves of it when it knows how many bytes they are.
  constexpr size_t kCommonBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
  if (size_ == kCommonBytes) {
    std::memcpy(frame, bytes_.data(), kCommonBytes);
  } else {
    std::memcpy(frame, bytes_.data(), size_);
  }
  store_be16(frame + size_ - kUdpBytes + 4, static_cast<uint32_t>(udp_bytes));
  std::byte* const l3 = frame + l3_offset_;
  if (ipv4_) {
    const auto total_bytes = static_cast<uint32_t>(kIpv4Bytes + udp_bytes + surplus_bytes);
    store_be16(l3 + 2, total_bytes);
    store_be16(l3 + 10, internet_checksum(checksum_base_ + total_bytes));
  } else {
    store_be16(l3 + 4, static_cast<uint32_t>(udp_bytes + surplus_bytes));
  }
}

HeaderTemplate HeaderTemplate::with_traffic_class(uint8_t traffic_class) const {
  HeaderTemplate changed = *this;
  std::byte* const l3 = changed.bytes_.data() + l3_offset_;
  if (ipv4_) {
    store_u8(l3 + 1, traffic_class);
    changed.checksum_base_ = ipv4_header_sum(l3);
  } else {
    store_be32(l3, (load_be32(l3) & ~(uint32_t{0xff} << 20)) | uint32_t{traffic_class} << 20);
  }
  return changed;
}

void mark_ecn_capable(std::byte* l3) {
  constexpr uint32_t kEct0 = 2;
  const uint32_t word = load_be16(l3);
  if (word >> 12 == 4) {
    if ((word & 3) != 0) return;
    store_be16(l3, word | kEct0);
    const uint32_t sum = static_cast<uint16_t>(~load_be16(l3 + 10)) + kEct0;
    store_be16(l3 + 10, internet_checksum(sum));
  } else if ((word >> 4 & 3) == 0) {
    store_be16(l3, word | kEct0 << 4);
  }
}

size_t transport_header_bytes(uint8_t opcode) { return traits_of(opcode).header_bytes; }

size_t write_transport_headers(std::byte* to, const Bth& bth, const ExtendedHeaders& ext) {
  store_bth(to, bth);
  std::byte* p = to + kBthBytes;
  const OpcodeTraits& traits = traits_of(bth.opcode);
  if (traits.xrceth) {
    store_reserved8_be24(p, ext.xrc_srq.value);
    p += kXrcEthBytes;
  }
  if (traits.deth) {
    store_be32(p, ext.deth.qkey);
    store_reserved8_be24(p + 4, ext.deth.source_qp.value);
    p += kDethBytes;
  }
  if (traits.feth) {
    store_be32(p, (ext.feth.selectivity & 3u) << 4 | (ext.feth.placement & 0xfu));
    p += kFethBytes;
  }
  if (traits.reth) {
    store_be64(p, ext.reth.virtual_address);
    store_be32(p + 8, ext.reth.rkey.value);
    store_be32(p + 12, ext.reth.length_bytes);
    p += kRethBytes;
  }
  if (traits.atomic_eth) {
    store_be64(p, ext.atomic.virtual_address);
    store_be32(p + 8, ext.atomic.rkey.value);
    store_be64(p + 12, ext.atomic.swap_or_add);
    store_be64(p + 20, ext.atomic.compare);
    p += kAtomicEthBytes;
  }
  if (traits.aeth) {
    store_u8(p, ext.aeth.syndrome);
    store_be24(p + 1, ext.aeth.msn);
    p += kAethBytes;
  }
  if (traits.atomic_ack_eth) {
    store_be64(p, ext.atomic_original);
    p += kAtomicAckEthBytes;
  }
  if (traits.imm) {
    std::memcpy(p, &ext.immediate, kImmBytes);
    p += kImmBytes;
  }
  if (traits.ieth) {
    store_be32(p, ext.invalidate.value);
    p += kIethBytes;
  }
  return static_cast<size_t>(p - to);
}

std::vector<std::byte> build_frame(const Ethernet& ethernet, const Ip& ip, const Udp& udp,
                                   const Bth& bth, const ExtendedHeaders& ext,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> surplus) {
  const HeaderTemplate headers(ethernet, ip, udp);
  const size_t after_udp_bytes =
      transport_bytes_written(bth.opcode) + payload.size() + (bth.pad_bytes & 0x3u) + kIcrcBytes;
  std::vector<std::byte> frame(headers.size_bytes() + after_udp_bytes + surplus.size());
  headers.write(frame.data(), after_udp_bytes, surplus.size());
  std::byte* const bth_start = frame.data() + headers.size_bytes();
  std::byte* const payload_start = bth_start + write_transport_headers(bth_start, bth, ext);
  std::copy(payload.begin(), payload.end(), payload_start);
  std::ranges::copy(surplus, frame.end() - static_cast<std::ptrdiff_t>(surplus.size()));
  store_icrc(
      std::span(frame).first(frame.size() - surplus.size()).subspan(headers.l3_offset_bytes()));
  return frame;
}

}  // namespace rocemu::wire
