// Findings that are not to be reported, as people write them in a file: lines of NAME:PATTERN, as
// the sanitizers have them. NAME is a detector's or *; PATTERN is part of the name of a function,
// file or module of the backtrace, with * for anything, ^ and $ for its ends. # begins a comment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verbs_shim/checker/report/symbols.h"

namespace rocemu::check {

// PATTERN as above.
bool matches(std::string_view pattern, std::string_view text);

class Suppressions {
 public:
  // Adds what `text` says. Returns the number, from 1, and the mistake of the first line that says
  // nothing sensible, as "2: ..."; empty for none.
  std::string parse(std::string_view text);
  // Parses the file; a message of what is wrong with it, or empty.
  std::string read(const std::string& path);

  bool covers(std::string_view name, const std::vector<SourcePlace>& backtrace) const;

 private:
  struct Line {
    std::string name;
    std::string pattern;
  };
  std::vector<Line> lines_;
};

}  // namespace rocemu::check
