// --as text: one line an event, for grep.
#pragma once

#include <iosfwd>

#include "emulator/trace/format/reader.h"
#include "emulator/trace/show/selection.h"

namespace rocemu::trace {

// "0.000012345 rocemu0 QP 0x11 packet sent: SEND_FIRST, PSN 17, 1024 B, to QP 0x12": seconds since
// the trace began, device, QP, event. With a QPN also what others have recorded of that QP.
void show_text(const Trace& trace, const Selection& selection, std::ostream& out);

}  // namespace rocemu::trace
