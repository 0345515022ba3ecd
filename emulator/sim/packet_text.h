// One line for people: of a frame (who to whom, opcode, PSN, and what the headers say), or of
// counters.
#pragma once

#include <string>

#include "emulator/sim/fabric.h"
#include "emulator/transport/interface/counters.h"

namespace rocemu::sim {

std::string describe(std::span<const std::byte> frame);
// Describes it with the time and what the network does to it.
std::string describe(const FrameRecord& record);
// Names and values of those that are not 0.
std::string describe(const transport::Counters& counters);

}  // namespace rocemu::sim
