// One line for people: of a frame (who to whom, opcode, PSN, and what the headers say), or of
// counters.
#pragma once

#include <string>

#include "emulator/sim/fabric.h"
#include "emulator/transport/interface/counters.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::sim {

// An ICRC that is not owed and is wrong is told of.
std::string describe(std::span<const std::byte> frame,
                     transport::Icrc icrc = transport::Icrc::there);
// Describes it with the time and what the network does to it.
std::string describe(const FrameRecord& record, transport::Icrc icrc = transport::Icrc::there);
// Names and values of those that are not 0.
std::string describe(const transport::Counters& counters);

}  // namespace rocemu::sim
