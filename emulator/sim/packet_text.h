// A frame as one line for people: who to whom, opcode, PSN, and what the headers say.
#pragma once

#include <string>

#include "emulator/sim/fabric.h"

namespace rocemu::sim {

std::string describe(std::span<const std::byte> frame);
// Describes it with the time and what the network does to it.
std::string describe(const FrameRecord& record);

}  // namespace rocemu::sim
