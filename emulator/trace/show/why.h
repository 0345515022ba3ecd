// `rocemu trace why`: where the time of a QP went, in sentences, and what to change.
//
// Every moment from a QP's first post to its last poll is given to what kept its requests from
// being done: of several reasons to the one that names most. What was done and only had to be
// polled is the program's; when nothing is posted, nothing is waited for.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>

#include "emulator/trace/show/selection.h"
#include "emulator/trace/show/story.h"

namespace rocemu::trace {

// From the weakest to the strongest: of several at a time the last one counts.
enum class Reason : uint8_t {
  idle,       // nothing is posted
  poll,       // all is done, and not polled
  untaken,    // posted, and the NIC has not taken it
  wire,       // under way: the network, and the other end
  not_ready,  // the QP is not in RTS
  earlier,    // a local request waits for those before it
  pace,
  window,
  fence,
  rd_atomics,
  repair,   // what was lost is sent again
  timeout,  // an ACK timeout runs out
  rnr,      // the receiver was not ready
};
inline constexpr size_t kReasons = static_cast<size_t>(Reason::rnr) + 1;

struct TimeSpent {
  uint64_t whole_ns = 0;
  std::array<uint64_t, kReasons> ns{};     // by Reason; together whole_ns
  std::array<uint64_t, kReasons> times{};  // how often it began
  uint64_t operator[](Reason reason) const { return ns[static_cast<size_t>(reason)]; }
};

TimeSpent time_spent(const Story& story, At qp);

// Tells of all QPs that are selected and have records, in the order of their numbers. False: the
// trace has none.
bool tell_why(const Story& story, const Selection& selection, std::ostream& out);

}  // namespace rocemu::trace
