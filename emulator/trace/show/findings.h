// Says what a QP's records tell beside where its time went, in sentences for `rocemu trace why`.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "emulator/trace/show/story.h"

namespace rocemu::trace {

// "QP 0x11 of rocemu0".
std::string qp_text(const Story& story, At qp);

// The first request that failed: with which status, by whose rule, what was flushed behind it, and
// what to look at. Nothing where none has failed.
void tell_failure(const Story& story, At qp, std::ostream& out);

// Receives says how a QP's program deals with what it receives.
struct Receives {
  uint64_t received = 0;
  uint64_t rnr_naks = 0;           // that it has sent
  uint64_t rnr_naks_unpolled = 0;  // of these: while completions of receives were not polled
  uint64_t unpolled_ns = 0;        // while there were such completions, for more than 50 us
  uint64_t longest_ns = 0;         // that one of them lay there

  // The program does not come to take what it has: more receives would not help for long.
  bool is_slow() const { return rnr_naks_unpolled * 2 > rnr_naks; }
};
Receives look_at_receives(const Story& story, At qp);

// Tells how the QP's program receives, if it has received anything; `whole_ns` is from the QP's
// first event to its last.
void tell_receives(const Story& story, At qp, uint64_t whole_ns, std::ostream& out);

// READs of more than a word that were under way together with a WRITE or atomic to the same bytes,
// of another QP, or behind them in the same one without a fence: nothing orders these (IBTA vol 1,
// 10.8.3.3). Bytes are the same where rkey and addresses are. Nothing where there are none.
void tell_unordered(const Story& story, At qp, std::ostream& out);

}  // namespace rocemu::trace
