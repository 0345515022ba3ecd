#include <algorithm>
#include <map>
#include <ostream>
#include <utility>
#include <vector>

#include "base/verbs/numbers.h"
#include "emulator/trace/show/findings.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

// A word is read whole or not at all: whoever looks at one again and again means to.
constexpr uint32_t kWordBytes = 8;
// Of those under way to a region at a time so many are looked at.
constexpr size_t kMaxUnderWay = 256;

struct Access {
  At request;
  At qp;
  bool reads;
  bool is_fenced;
  uint64_t begin_ns, end_ns;
  uint64_t from, to;  // addresses at the other end
};

// By the other end's device and its rkey.
using Accesses = std::map<std::pair<uint16_t, uint32_t>, std::vector<Access>>;

bool is_access(uint8_t opcode, bool& reads) {
  reads = opcode == verbs::wr_opcode::kRdmaRead;
  return reads || opcode == verbs::wr_opcode::kRdmaWrite ||
         opcode == verbs::wr_opcode::kRdmaWriteWithImm ||
         opcode == verbs::wr_opcode::kAtomicCmpAndSwp ||
         opcode == verbs::wr_opcode::kAtomicFetchAndAdd || opcode == verbs::wr_opcode::kAtomicWrite;
}

// Returns the accesses of all QPs to the device that `qp` speaks with.
Accesses accesses_beside(const Story& story, At qp) {
  Accesses all;
  const At peer = story.qps[qp].peer;
  if (peer == kNowhere) return all;
  const uint16_t device = story.qps[peer].device;
  for (At at = 0; at < story.requests.size(); ++at) {
    const Request& request = story.requests[at];
    if (request.is_receive || request.taken == kNowhere || request.qp == kNowhere) continue;
    const At other = story.qps[request.qp].peer;
    if (other == kNowhere || story.qps[other].device != device) continue;
    const Record& taken = story.record(request.taken);
    Access access{at,
                  request.qp,
                  false,
                  (taken.flags & flag::kFence) != 0,
                  taken.time_ns,
                  0,
                  taken.value,
                  taken.value + taken.length_bytes};
    if (!is_access(taken.opcode, access.reads) || access.to <= access.from) continue;
    const At end = request.acknowledged != kNowhere ? request.acknowledged : request.pushed;
    access.end_ns = end == kNowhere ? ~uint64_t{0} : story.time_ns(end);
    all[{device, taken.detail}].push_back(access);
  }
  return all;
}

// `first` was taken first. What one QP asks for is done in order, but for what is behind a READ.
bool are_unordered(const Access& first, const Access& second) {
  if (first.reads == second.reads) return false;
  const Access& read = first.reads ? first : second;
  if (read.to - read.from <= kWordBytes) return false;
  if (first.from >= second.to || second.from >= first.to) return false;
  return first.qp != second.qp || (first.reads && !second.is_fenced);
}

struct Meeting {
  Access read, write;
};

struct Meetings {
  uint64_t count = 0;
  Meeting shown{};
  bool shows_early = false;  // the READ was posted last, and over first

  void add(const Access& first, const Access& second) {
    ++count;
    const bool is_early = !first.reads && second.end_ns < first.end_ns;
    if (count > 1 && (shows_early || !is_early)) return;
    shown = first.reads ? Meeting{first, second} : Meeting{second, first};
    shows_early = is_early;
  }
};

void look_at_region(std::vector<Access>& accesses, At qp, Meetings& found) {
  std::ranges::stable_sort(accesses, {}, &Access::begin_ns);
  std::vector<Access> under_way;
  for (const Access& access : accesses) {
    std::erase_if(under_way, [&](const Access& it) { return it.end_ns <= access.begin_ns; });
    if (under_way.size() >= kMaxUnderWay) under_way.erase(under_way.begin());
    for (const Access& before : under_way)
      if ((before.reads ? before.qp : access.qp) == qp && are_unordered(before, access))
        found.add(before, access);
    under_way.push_back(access);
  }
}

}  // namespace

void tell_unordered(const Story& story, At qp, std::ostream& out) {
  Meetings found;
  Accesses all = accesses_beside(story, qp);
  for (auto& [region, accesses] : all) look_at_region(accesses, qp, found);
  if (found.count == 0) return;
  const auto& [read, write] = found.shown;
  const Record& reading = story.record(story.requests[read.request].taken);
  const Record& writing = story.record(story.requests[write.request].taken);
  const bool is_same = read.qp == write.qp;
  out << found.count << (found.count == 1 ? " time" : " times")
      << " a READ was under way together with a request that changes the same bytes: "
      << request_opcode_text(reading.opcode) << " of " << reading.length_bytes << " B at "
      << hexadecimal(reading.value) << ", wr_id " << hexadecimal(reading.wr_id) << ", and "
      << request_opcode_text(writing.opcode) << ", wr_id " << hexadecimal(writing.wr_id) << ", of "
      << (is_same ? "the same QP" : qp_text(story, write.qp));
  if (found.shows_early) out << ", which was taken before and was not over when the READ was";
  out << ".\n"
      << (is_same ? "Nothing orders what is behind a READ: post it with IBV_SEND_FENCE, or when "
                    "the READ's completion has come.\n"
                  : "Nothing orders requests of two QPs: post the second when the completion of "
                    "the first has come, or both on one QP.\n");
}

}  // namespace rocemu::trace
