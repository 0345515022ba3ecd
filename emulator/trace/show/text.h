// --as text: one line an event, for grep.
#pragma once

#include <iosfwd>

#include "emulator/trace/format/reader.h"

namespace rocemu::trace {

// Selection says which records of a trace are shown.
struct Selection {
  uint32_t qpn = 0;  // 0: all
  bool takes(const Record& record) const {
    return qpn == 0 || record.qpn == qpn || record.peer_qpn == qpn;
  }
};

// "0.000012345 rocemu0 QP 0x11 packet sent: SEND_FIRST, PSN 17, 1024 B, to QP 0x12": seconds since
// the trace began, device, QP, event.
void show_text(const Trace& trace, const Selection& selection, std::ostream& out);

}  // namespace rocemu::trace
