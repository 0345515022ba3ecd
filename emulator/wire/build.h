// Frames from header values. Two ways: whole frames for tests, tools and MADs (build_frame), and a
// per-path template that the transport copies and patches for every packet (HeaderTemplate).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/wire/packet.h"

namespace rocemu::wire {

// HeaderTemplate is what stands before the BTH, made once for each path. Copying it and patching
// lengths and the IPv4 checksum is all that a packet costs.
class HeaderTemplate {
 public:
  static constexpr size_t kMaxBytes = kEthernetBytes + kVlanTagBytes + kIpv6Bytes + kUdpBytes;

  HeaderTemplate() = default;
  HeaderTemplate(const Ethernet& ethernet, const Ip& ip, const Udp& udp);

  size_t size_bytes() const { return size_; }
  size_t l3_offset_bytes() const { return l3_offset_; }

  // Writes the headers to `frame` for a datagram with `after_udp_bytes` bytes from the BTH through
  // the ICRC, and `surplus_bytes` behind it in the IP packet. Preconditions: `frame` holds
  // size_bytes() + after_udp_bytes; the packet fits into 65535 bytes; this was not made by the
  // default constructor.
  void write(std::byte* frame, size_t after_udp_bytes, size_t surplus_bytes = 0) const;

  // The same with another traffic class (TOS for IPv4).
  HeaderTemplate with_traffic_class(uint8_t traffic_class) const;

 private:
  std::array<std::byte, kMaxBytes> bytes_{};
  uint8_t size_ = 0;
  uint8_t l3_offset_ = 0;
  bool ipv4_ = false;
  uint32_t checksum_base_ = 0;  // IPv4: sum of the header's words, total length and checksum zero
};

// Sets ECT(0) in an IP header whose ECN field is 0, and corrects IPv4's checksum (RFC 3168, 5, and
// RFC 1624).
void mark_ecn_capable(std::byte* l3);

// Bytes of the BTH and the extended headers that an opcode carries. 0 for an unknown opcode.
size_t transport_header_bytes(uint8_t opcode);

// Writes the BTH and the extended headers that its opcode carries to `to`; returns how many bytes.
// Precondition: room for transport_header_bytes(bth.opcode). An unknown opcode gets a BTH alone,
// kBthBytes. Only as many bits of a value are written as its field has.
size_t write_transport_headers(std::byte* to, const Bth& bth, const ExtendedHeaders& ext);

// A whole frame, ICRC included; bth.pad_bytes pad bytes, zero, are added, and `surplus` behind the
// datagram. UDP and IPv4 checksums: UDP as given, IPv4 computed. Precondition: the packet fits into
// 65535 bytes. Values that parse_frame would refuse (an unknown opcode, a wrong pad) are built as
// they are.
std::vector<std::byte> build_frame(const Ethernet& ethernet, const Ip& ip, const Udp& udp,
                                   const Bth& bth, const ExtendedHeaders& ext,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> surplus = {});

}  // namespace rocemu::wire
