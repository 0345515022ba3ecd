// Frames of a script: made, compared with what came, and as text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/script/language/script.h"
#include "emulator/script/play/objects.h"
#include "emulator/wire/packet.h"

namespace rocemu::script {

// The two ends of the wire: the script, which plays the peer, and the NIC.
struct Ends {
  wire::Ethernet ethernet;  // from the script to the NIC
  wire::Ip ip;              // likewise
  uint16_t udp_source_port = 0xc000;
};

// The frame that the script sends. Throws Impossible.
std::vector<std::byte> make_frame(const Frame& frame, const Objects& objects, const Ends& ends);

// Returns the differences of the frame that came from the one expected, by the names of its fields;
// empty: there are none. Throws Impossible.
std::string differences(const Frame& expected, std::span<const std::byte> came,
                        const Objects& objects);

// Returns the frame as a script would expect it: "ACK psn +0, msn 1".
std::string frame_text(std::span<const std::byte> frame, const Objects& objects);

}  // namespace rocemu::script
