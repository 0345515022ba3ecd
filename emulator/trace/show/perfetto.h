// --as perfetto: the JSON trace event format, which ui.perfetto.dev and Chrome open as it is.
//
// A process for each device, with tracks for each QP: its requests from post to poll, with their
// packets in them, what arrives, and events; and a process for each program, with its posts and
// polls. Arrows go from packets to where their data are placed or, where that is not known, to
// where they arrive.
#pragma once

#include <iosfwd>

#include "emulator/trace/show/selection.h"
#include "emulator/trace/show/story.h"

namespace rocemu::trace {

void show_perfetto(const Story& story, const Selection& selection, std::ostream& out);

}  // namespace rocemu::trace
