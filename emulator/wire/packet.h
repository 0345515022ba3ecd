// A frame parsed once into values that cannot be malformed, and the way back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/wire/headers.h"
#include "emulator/wire/opcode.h"

namespace rocemu::wire {

// A parsed RoCEv2 frame. Refers to the frame's bytes, owns nothing.
struct Packet {
  Ethernet ethernet;
  Ip ip;
  Udp udp;
  Bth bth;
  ExtendedHeaders ext;
  std::span<const std::byte> payload;  // without pad bytes and ICRC; of a run it may stand
                                       // elsewhere than in the frame (transport's LentPayload)
  std::span<const std::byte> l3;       // from the IP header through the ICRC
  // Path telemetry behind the datagram (base/net/path_telemetry.h); empty: none.
  std::span<const std::byte> telemetry;
  // A run (run.h): so many packets, each but the last with so much payload. 1: a single packet.
  uint32_t packets = 1;
  uint32_t segment_bytes = 0;

  Transport transport() const { return static_cast<Transport>(bth.opcode & 0xe0); }
  Operation operation() const { return static_cast<Operation>(bth.opcode & 0x1f); }
  const OpcodeTraits& traits() const { return traits_of(bth.opcode); }
};

enum class ParseError : uint8_t {
  none,
  truncated,        // shorter than its headers say
  not_ip,           // EtherType other than IPv4 and IPv6
  bad_ip_header,    // version, header length, total length, options
  fragment,         // an IP fragment
  bad_ip_checksum,  // IPv4 header checksum
  not_roce,         // not UDP to 4791
  bad_udp_length,
  bad_version,  // BTH TVer
  unknown_opcode,
  bad_payload,  // payload where there may be none, pad bytes longer than the payload, not whole
                // words with its pad, longer than the largest MTU, not 16 bytes in a CNP
};

std::string_view to_string(ParseError error);

// Parses one Ethernet frame into `packet`. On an error `packet` is unspecified; otherwise it refers
// to `frame`, and extended headers that its opcode does not carry are zero.
// One 802.1Q tag is understood. Trailing Ethernet padding after the IP datagram is ignored. IPv4
// options and IPv6 extension headers are refused, and so is an IPv6 frame with an IPv4-mapped
// address: none may appear on a wire (RFC 6890), and as a GID it would pass for an IPv4 peer.
// Path telemetry may stand behind the UDP datagram, within the IP packet; nothing else may.
// A UDP checksum is accepted unverified, whether 0 or not: the ICRC covers what it covers. The ICRC
// is not looked at: see icrc.h.
// `max_payload_bytes`: of what is no packet of the wire (run.h) there may be more.
ParseError parse_frame(std::span<const std::byte> frame, Packet& packet,
                       size_t max_payload_bytes = kMaxMtuBytes);

}  // namespace rocemu::wire
