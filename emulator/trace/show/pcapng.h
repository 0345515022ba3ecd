// --as pcapng: frames made again from a trace's records, with what the NIC knows of each as the
// packet's comment, which Wireshark and tshark show.
//
// Records hold headers alone: payload is zeroes, as many as there were bytes, and what
// records do not hold (UDP ports, MACs, immediates, atomics' operands) is made up.
#pragma once

#include <iosfwd>

#include "emulator/trace/show/selection.h"
#include "emulator/trace/show/story.h"

namespace rocemu::trace {

void show_pcapng(const Story& story, const Selection& selection, std::ostream& out);

}  // namespace rocemu::trace
