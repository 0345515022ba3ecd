// --as ladder: one HTML file, without any reference outside it, that draws the two ends as lines
// and packets as arrows between them. What it looks like and how it is used is in ladder/.
#pragma once

#include <iosfwd>
#include <string>

#include "emulator/trace/show/selection.h"
#include "emulator/trace/show/story.h"

namespace rocemu::trace {

struct LadderOptions {
  std::string title;
  Selection selection{};  // the connections of these QPs
  // A browser takes no more than so many in its stride; the summary tells that some are left out.
  size_t most_records = 200'000;
};

void show_ladder(const Story& story, const LadderOptions& options, std::ostream& out);

}  // namespace rocemu::trace
