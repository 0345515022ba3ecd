// A finding with all that is shown of it, and its two forms: text for people, a line of JSON for
// the command that collects them (docs/check.md has the schema).
#pragma once

#include <string>
#include <vector>

#include "verbs_shim/checker/report/finding.h"
#include "verbs_shim/checker/report/symbols.h"

namespace rocemu::check {

struct Backtrace {
  std::string label;
  pid_t thread = 0;  // 0: not known
  std::vector<SourcePlace> frames;
};

struct Report {
  std::string name;
  std::string verb;  // the call that showed it; empty at the program's end
  std::string program;
  pid_t process = 0;
  pid_t thread = 0;
  Finding finding;
  std::vector<Backtrace> backtraces;  // the call's comes first
};

// The frames of a place, without those of rocemu itself.
std::vector<SourcePlace> program_frames(PlaceId place);

std::string as_text(const Report& report);
// The text ends with a newline, and has no other.
std::string as_json_line(const Report& report);

}  // namespace rocemu::check
