// TCP segmentation: the headers of one TCP segment, of which a NIC makes those of many frames
// ("TSO", "large send").
//
// 1. The headers are Ethernet, any number of VLAN tags, IPv4 with or without options or IPv6
//    without extension headers, and TCP, which they end with. Lengths and checksums in them are
//    not looked at.
// 2. Each frame has its own lengths, sequence number and checksums, and with IPv4 its own
//    identification, the first frame's being the one given (RFC 6864).
// 3. FIN and PSH are for the last frame alone, CWR for the first (RFC 3168, 6.1.2). All other
//    flags, and the urgent pointer, go with each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rocemu::wire {

// Where the headers begin that differ from frame to frame.
struct TcpOffsets {
  uint16_t l3_bytes = 0;
  uint16_t l4_bytes = 0;
  bool ipv4 = false;
};

// Finds the headers that `bytes` begin with, which the payload may follow; none when they are not
// those of rule 1.
std::optional<TcpOffsets> find_tcp(std::span<const std::byte> bytes);

// True when `headers` are those of rule 1 and nothing stands behind them.
bool are_tcp_headers(std::span<const std::byte> headers);

// One frame of those that a message is cut into.
struct TcpSegment {
  uint32_t index = 0;
  uint32_t offset_bytes = 0;  // of its payload in the message's
  bool is_last = false;
};

// Makes the headers at the beginning of `frame`, a copy of the message's, those of one of its
// segments, payload and checksums included. False when they are not those of rule 1: a program may
// have changed them since they were looked at.
bool finish_tcp_segment(std::span<std::byte> frame, const TcpSegment& segment);

}  // namespace rocemu::wire
