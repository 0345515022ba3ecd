// A run is several packets of one message that follow each other and travel as one frame, as
// segments of TCP do between virtual NICs: from device to device of one switch, and only where
// nobody looks at frames. It is written like a single packet with the payload of all of them:
//
//   - its opcode starts the message if its first packet does, and ends it if its last one does,
//     and it has the extended headers of such a packet;
//   - its PSN is that of the first packet; AckReq and the solicited event are those of the last,
//     and no packet before it has either.
//
// Only SENDs, WRITEs and READ responses of the connected services are sent as runs. What a receiver
// cannot take as a whole it takes apart: to the transport a run is its packets, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/wire/packet.h"

namespace rocemu::wire {

// RunShape says how a frame is cut into packets: each but the last has so much payload.
struct RunShape {
  uint32_t packets = 1;
  uint32_t segment_bytes = 0;  // 0: one packet, which is no run
  // The length of the packets' own frames together, which is what counters are to count.
  uint32_t frame_bytes = 0;
};

// The most payload of a run: as much as two cores' caches like to hand over, and few enough packets
// for small windows to move on.
inline constexpr size_t kMaxRunBytes = 32768;
inline constexpr uint32_t kMaxRunPackets = 64;

// The opcode of packet `index` of `packets` that a run with `opcode` stands for.
uint8_t opcode_in_run(uint8_t opcode, uint32_t index, uint32_t packets);

// The bytes that packets of a run have more than the run, all of them together: headers and ICRCs.
// `before_bth_bytes` stand before the BTH of each.
size_t extra_header_bytes(uint8_t opcode, uint32_t packets, size_t before_bth_bytes);

// As parse_frame, for a frame that is a run of so many bytes a packet. Sets `packets` and
// `segment_bytes` of the packet. What cannot be a run is bad_payload.
ParseError parse_run(std::span<const std::byte> frame, uint32_t segment_bytes, Packet& run);

// Packet number `index` of the run, as if it had come by itself; but for `l3`, of which only the
// length is right.
Packet packet_of_run(const Packet& run, uint32_t index);

}  // namespace rocemu::wire
