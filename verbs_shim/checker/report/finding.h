// A finding: what a detector has to say, and to whom it says it.
#pragma once

#include <string>
#include <vector>

#include "verbs_shim/checker/report/place.h"

namespace rocemu::check {

// A place that belongs to a finding beside the call itself.
struct RelatedPlace {
  std::string label;  // "the request was posted here", with "here" for the backtrace that follows
  PlaceId place = kNoPlace;
  pid_t thread = 0;  // 0: not known
};

struct Finding {
  // The mistake, in one sentence with the objects by name and a full stop.
  std::string sentence;
  // The man page or clause that says so, and why it works on one NIC and not on the next.
  std::string why;
  std::string advice;
  // The objects by name: "QP 0x000011 (RC)", "MR 0x7f.., 4096 bytes, lkey 0x1234".
  std::vector<std::string> objects;
  std::vector<RelatedPlace> related;
};

// Takes findings. Thread-safe. Each is shown once for each name and place; what a suppression names
// is not shown.
class Reporter {
 public:
  virtual ~Reporter() = default;
  // True when a finding of this name was already shown for this place, so that nobody builds it
  // again. One that is not known is so from now on: exactly one caller gets false.
  virtual bool was_reported(const char* name, PlaceId place) = 0;
  // Shows it, symbols and all; slow. `name` is static. `place` may be kNoPlace, for what the
  // program's end brought.
  virtual void report(const char* name, const Finding& finding, const char* verb, PlaceId place,
                      pid_t thread) = 0;
};

}  // namespace rocemu::check
