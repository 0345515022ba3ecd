#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "emulator/trace/show/findings.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

// Nobody polls in no time: a program that has it sooner is as quick as can be.
constexpr uint64_t kPromptNs = 50'000;

// Completions of receives that lie in the CQ: one more, or one less, from that time on.
std::vector<std::pair<uint64_t, int>> unpolled(const Story& story, At qp, Receives& found) {
  std::vector<std::pair<uint64_t, int>> changes;
  for (const At at : story.qps[qp].requests) {
    const Request& request = story.requests[at];
    if (!request.is_receive || request.pushed == kNowhere) continue;
    if (story.record(request.pushed).code != 0) continue;
    ++found.received;
    // What the trace does not see polled may have been.
    if (request.polled == kNowhere) continue;
    const uint64_t pushed_ns = story.time_ns(request.pushed);
    const uint64_t from_ns = pushed_ns + kPromptNs, to_ns = story.time_ns(request.polled);
    if (to_ns <= from_ns) continue;
    found.longest_ns = std::max(found.longest_ns, to_ns - pushed_ns);
    changes.emplace_back(from_ns, 1);
    changes.emplace_back(to_ns, -1);
  }
  std::ranges::sort(changes);
  return changes;
}

}  // namespace

Receives look_at_receives(const Story& story, At qp) {
  Receives found;
  const auto changes = unpolled(story, qp, found);
  std::vector<uint64_t> naks;
  const Qp& it = story.qps[qp];
  for (const Record& record : story.trace->records)
    if (record.kind == Kind::rnr_sent && record.device == it.device && record.qpn == it.qpn)
      naks.push_back(record.time_ns);
  found.rnr_naks = naks.size();
  std::ranges::sort(naks);
  auto nak = naks.begin();
  uint64_t since_ns = 0;
  int lying = 0;
  for (const auto& [ns, by] : changes) {
    for (; nak != naks.end() && *nak < ns; ++nak) found.rnr_naks_unpolled += lying > 0 ? 1 : 0;
    if (lying > 0) found.unpolled_ns += ns - since_ns;
    lying += by;
    since_ns = ns;
  }
  return found;
}

void tell_receives(const Story& story, At qp, uint64_t whole_ns, std::ostream& out) {
  const Receives found = look_at_receives(story, qp);
  if (found.received == 0 && found.rnr_naks == 0) return;
  const uint64_t percent =
      whole_ns == 0 ? 0 : std::min<uint64_t>(100, found.unpolled_ns / ((whole_ns + 99) / 100));
  out << "It has received " << found.received << (found.received == 1 ? " message" : " messages");
  if (percent >= 1)
    out << "; for " << percent << " % of its time completions of these lay in the CQ, one for "
        << duration_text(found.longest_ns) << ", and its program had not polled them";
  if (found.rnr_naks > 0) {
    out << ". It has sent " << found.rnr_naks << (found.rnr_naks == 1 ? " RNR NAK" : " RNR NAKs");
    if (percent >= 1) out << ", " << found.rnr_naks_unpolled << " of them in that time";
  }
  out << ".\n";
  if (found.rnr_naks > 0 && !found.is_slow())
    out << "Its program polled what had come, and had posted too few receives: post more, and anew "
           "before the work on a message rather than behind it.\n";
  else if (percent >= 50)
    out << "Its program is slower than what comes: take several completions at a time, do the work "
           "in other threads, or have the other end send less.\n";
}

}  // namespace rocemu::trace
