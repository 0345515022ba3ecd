// Which of a QP's packets leave once more, and why: the requester tells of them when it builds
// them, and they leave with their burst.
#pragma once

#include "emulator/trace/format/record.h"
#include "emulator/wire/types.h"

namespace rocemu::trace {

class Resends {
 public:
  // What is built from now on a second time is so because of `cause`.
  void go_back(Cause cause) { cause_ = cause; }
  Cause cause() const { return cause_; }

  // A packet was built that has been sent before. PSNs come in their order.
  void on_built(wire::Psn psn) {
    if (!wait_) from_ = psn;
    wait_ = true;
    to_ = psn;
  }

  // A request's packet leaves. True when it is one of those.
  bool take(wire::Psn psn) {
    if (!wait_ || psn.before(from_) || psn.after(to_)) return false;
    if (psn == to_) wait_ = false;
    return true;
  }

 private:
  Cause cause_ = Cause::none;
  bool wait_ = false;  // those from from_ to to_ wait to leave
  wire::Psn from_;
  wire::Psn to_;
};

}  // namespace rocemu::trace
