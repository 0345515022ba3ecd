#include "dpdk_io/kernel/gso_batch.h"

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/net/headers.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kIpv4HeadersBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
constexpr unsigned kIpv6HeadersBytes = kEthernetBytes + kIpv6Bytes + kUdpBytes;
static_assert(kIpv6HeadersBytes == kMaxHeadersBytes);

std::span<const std::byte> bytes_of(const rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, const std::byte*), frame->data_len};
}

rte_ipv4_hdr& ipv4_of(std::byte* headers) {
  return *reinterpret_cast<rte_ipv4_hdr*>(headers + kEthernetBytes);
}

rte_ipv6_hdr& ipv6_of(std::byte* headers) {
  return *reinterpret_cast<rte_ipv6_hdr*>(headers + kEthernetBytes);
}

rte_udp_hdr& udp_of(std::byte* headers, unsigned headers_bytes) {
  return *reinterpret_cast<rte_udp_hdr*>(headers + headers_bytes - kUdpBytes);
}

bool same(const std::byte* a, const std::byte* b, size_t from, size_t to) {
  return std::memcmp(a + from, b + from, to - from) == 0;
}

// All but lengths, identification and checksums.
bool same_flow(const std::byte* a, const std::byte* b, unsigned headers_bytes) {
  constexpr size_t kL3 = kEthernetBytes;
  const size_t udp = headers_bytes - kUdpBytes;
  if (!same(a, b, udp, udp + 4)) return false;
  if (headers_bytes == kIpv4HeadersBytes)
    return same(a, b, 0, kL3 + 2) && same(a, b, kL3 + 6, kL3 + 10) && same(a, b, kL3 + 12, udp);
  return same(a, b, 0, kL3 + 4) && same(a, b, kL3 + 6, udp);
}

// Something stands behind the datagram, which the kernel would take for a part of it.
bool has_surplus(std::span<const std::byte> frame, unsigned headers_bytes) {
  const auto& udp = *reinterpret_cast<const rte_udp_hdr*>(frame.data() + headers_bytes - kUdpBytes);
  return rte_be_to_cpu_16(udp.dgram_len) != frame.size() - headers_bytes + kUdpBytes;
}

}  // namespace

bool kernel_has_gso() noexcept {
  static const bool has = [] {
    utsname name;
    unsigned major = 0, minor = 0;
    if (::uname(&name) != 0 || std::sscanf(name.release, "%u.%u", &major, &minor) != 2)
      return false;
    return major > 6 || (major == 6 && minor >= 2);
  }();
  return has;
}

unsigned headers_bytes_of(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kIpv4HeadersBytes) return 0;
  const auto& ethernet = *reinterpret_cast<const rte_ether_hdr*>(bytes.data());
  const std::byte* const l3 = bytes.data() + kEthernetBytes;
  if (ethernet.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
    const auto& ip = *reinterpret_cast<const rte_ipv4_hdr*>(l3);
    const bool plain = ip.version_ihl == RTE_IPV4_VHL_DEF && ip.next_proto_id == IPPROTO_UDP &&
                       (ip.fragment_offset & rte_cpu_to_be_16(kIpv4FragmentMask)) == 0;
    return plain ? kIpv4HeadersBytes : 0;
  }
  if (ethernet.ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) ||
      bytes.size() < kIpv6HeadersBytes)
    return 0;
  const auto& ip = *reinterpret_cast<const rte_ipv6_hdr*>(l3);
  return ip.proto == IPPROTO_UDP ? kIpv6HeadersBytes : 0;
}

bool is_ipv4(const std::byte* headers) noexcept {
  return reinterpret_cast<const rte_ether_hdr*>(headers)->ether_type ==
         rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
}

void write_lengths(std::byte* headers, unsigned headers_bytes, unsigned payload_bytes) noexcept {
  const auto udp_bytes = static_cast<uint16_t>(kUdpBytes + payload_bytes);
  if (headers_bytes == kIpv4HeadersBytes) {
    rte_ipv4_hdr& ip = ipv4_of(headers);
    ip.total_length = rte_cpu_to_be_16(static_cast<uint16_t>(sizeof ip + udp_bytes));
    ip.hdr_checksum = 0;
    ip.hdr_checksum = rte_ipv4_cksum(&ip);
  } else {
    ipv6_of(headers).payload_len = rte_cpu_to_be_16(udp_bytes);
  }
  rte_udp_hdr& udp = udp_of(headers, headers_bytes);
  udp.dgram_len = rte_cpu_to_be_16(udp_bytes);
  udp.dgram_cksum = 0;
}

void write_gso_lengths(std::byte* headers, unsigned headers_bytes,
                       unsigned payload_bytes) noexcept {
  write_lengths(headers, headers_bytes, payload_bytes);
  udp_of(headers, headers_bytes).dgram_cksum = headers_bytes == kIpv4HeadersBytes
                                                   ? rte_ipv4_phdr_cksum(&ipv4_of(headers), 0)
                                                   : rte_ipv6_phdr_cksum(&ipv6_of(headers), 0);
}

void write_identification(std::byte* headers, uint16_t identification) noexcept {
  rte_ipv4_hdr& ip = ipv4_of(headers);
  ip.packet_id = rte_cpu_to_be_16(identification);
  ip.hdr_checksum = 0;
  ip.hdr_checksum = rte_ipv4_cksum(&ip);
}

uint16_t identification_of(const std::byte* headers) noexcept {
  return rte_be_to_cpu_16(
      reinterpret_cast<const rte_ipv4_hdr*>(headers + kEthernetBytes)->packet_id);
}

unsigned gso_batch_frames(std::span<rte_mbuf* const> burst) noexcept {
  const auto goes_along = [](const rte_mbuf* frame) {
    return frame->nb_segs == 1 && rte_mbuf_refcnt_read(frame) == 1;
  };
  if (!goes_along(burst[0])) return 1;
  const std::span first = bytes_of(burst[0]);
  const unsigned headers_bytes = headers_bytes_of(first);
  if (headers_bytes == 0 || first.size() == headers_bytes || has_surplus(first, headers_bytes))
    return 1;
  const size_t payload_bytes = first.size() - headers_bytes;
  size_t total_bytes = first.size() - kEthernetBytes;
  unsigned count = 1;
  const size_t most = std::min<size_t>(burst.size(), kMaxGsoFrames);
  while (count < most && goes_along(burst[count])) {
    const std::span next = bytes_of(burst[count]);
    if (next.size() > first.size() || headers_bytes_of(next) != headers_bytes ||
        next.size() == headers_bytes || has_surplus(next, headers_bytes) ||
        !same_flow(first.data(), next.data(), headers_bytes))
      break;
    total_bytes += next.size() - headers_bytes;
    if (total_bytes > kMaxGsoBytes) break;
    ++count;
    if (next.size() - headers_bytes < payload_bytes) break;
  }
  return count;
}

void number_gso_batch(std::span<rte_mbuf* const> batch, uint16_t first,
                      const IdentificationSeal& seal) noexcept {
  uint16_t wanted = first;
  for (rte_mbuf* frame : batch) {
    auto* const headers = rte_pktmbuf_mtod(frame, std::byte*);
    if (!is_ipv4(headers)) return;
    if (identification_of(headers) != wanted)
      seal.set({headers + kEthernetBytes, frame->data_len - kEthernetBytes}, wanted);
    ++wanted;
  }
}

}  // namespace rocemu::dpdk_io
