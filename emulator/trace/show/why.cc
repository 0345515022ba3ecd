#include "emulator/trace/show/why.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "emulator/trace/show/findings.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

struct Change {
  uint64_t ns;
  Reason reason;
  int by;
};

class Timekeeper {
 public:
  Timekeeper(const Story& story, At qp) : story_(story), qp_(story.qps[qp]) {}

  TimeSpent measure();

 private:
  void spend(Reason reason, uint64_t from_ns, uint64_t to_ns) {
    if (to_ns <= from_ns) return;
    changes_.push_back({from_ns, reason, 1});
    changes_.push_back({to_ns, reason, -1});
    ++spent_.times[static_cast<size_t>(reason)];
  }
  void find_span();
  void look_at_requests();
  void look_at_records();
  void on_event(const Record& record);
  void on_sent(uint64_t now_ns);
  void on_sent_again(const Record& record);
  void on_answer(uint64_t now_ns);
  static Reason reason_of(Cause cause);

  const Story& story_;
  const Qp& qp_;
  TimeSpent spent_;
  std::vector<Change> changes_;
  uint64_t first_ns_ = ~uint64_t{0}, last_ns_ = 0;
  bool is_open_ = false;  // a request is not over when the trace is
  // These say what is going on, and since when; ~0: it is not.
  static constexpr uint64_t kNot = ~uint64_t{0};
  Reason waits_for_ = Reason::window;
  uint64_t waits_since_ns_ = kNot;
  uint64_t rnr_since_ns_ = kNot;
  uint64_t repair_since_ns_ = kNot;
  uint64_t sent_ns_ = kNot;  // the last packet, or timeout, that a timeout counts from
};

Reason Timekeeper::reason_of(Cause cause) {
  switch (cause) {
    case Cause::fence:
      return Reason::fence;
    case Cause::rd_atomics:
      return Reason::rd_atomics;
    case Cause::pace:
    case Cause::rate_limit:
      return Reason::pace;
    case Cause::earlier:
      return Reason::earlier;
    case Cause::not_ready:
      return Reason::not_ready;
    case Cause::rnr_wait:
      return Reason::rnr;
    default:
      return Reason::window;
  }
}

void Timekeeper::look_at_requests() {
  for (const At at : qp_.requests) {
    const Request& request = story_.requests[at];
    const At first = request.first();
    if (request.is_receive || first == kNowhere) continue;
    const uint64_t begin_ns = story_.time_ns(first);
    const uint64_t taken_ns =
        request.taken == kNowhere ? begin_ns : std::max(begin_ns, story_.time_ns(request.taken));
    const At done = request.pushed != kNowhere ? request.pushed : request.acknowledged;
    const uint64_t done_ns = done == kNowhere ? last_ns_ : std::max(taken_ns, story_.time_ns(done));
    spend(Reason::untaken, begin_ns, taken_ns);
    spend(Reason::wire, taken_ns, done_ns);
    if (request.pushed != kNowhere && request.polled != kNowhere)
      spend(Reason::poll, done_ns, story_.time_ns(request.polled));
  }
}

void Timekeeper::on_sent(uint64_t now_ns) {
  if (waits_since_ns_ != kNot) spend(waits_for_, waits_since_ns_, now_ns);
  waits_since_ns_ = kNot;
  sent_ns_ = now_ns;
}

// What had been handed to the port before the RNR NAK came ends no wait.
void Timekeeper::on_sent_again(const Record& record) {
  if (record.cause != Cause::rnr_nak) {
    if (repair_since_ns_ == kNot) repair_since_ns_ = record.time_ns;
    return;
  }
  if (rnr_since_ns_ != kNot) spend(Reason::rnr, rnr_since_ns_, record.time_ns);
  rnr_since_ns_ = kNot;
}

void Timekeeper::on_answer(uint64_t now_ns) {
  if (repair_since_ns_ != kNot) spend(Reason::repair, repair_since_ns_, now_ns);
  repair_since_ns_ = kNot;
}

void Timekeeper::on_event(const Record& record) {
  switch (record.kind) {
    case Kind::packet_sent:
      // Nothing said that it was lost but an answer that did not come.
      if (record.cause == Cause::early_probe && sent_ns_ != kNot)
        spend(Reason::repair, sent_ns_, record.time_ns);
      if ((record.flags & flag::kResponse) == 0) on_sent(record.time_ns);
      if ((record.flags & flag::kRetransmission) != 0) on_sent_again(record);
      break;
    case Kind::waits:
      if (waits_since_ns_ != kNot) spend(waits_for_, waits_since_ns_, record.time_ns);
      waits_for_ = reason_of(record.cause);
      waits_since_ns_ = record.cause == Cause::none ? kNot : record.time_ns;
      break;
    case Kind::rnr_received:
      if (rnr_since_ns_ == kNot) rnr_since_ns_ = record.time_ns;
      break;
    case Kind::ack_timeout:
      if (sent_ns_ != kNot) spend(Reason::timeout, sent_ns_, record.time_ns);
      sent_ns_ = record.time_ns;
      if (repair_since_ns_ == kNot) repair_since_ns_ = record.time_ns;
      break;
    case Kind::acknowledged:
      on_answer(record.time_ns);
      break;
    case Kind::completion_pushed:
      if ((record.flags & flag::kReceiveQueue) == 0) on_answer(record.time_ns);
      break;
    default:
      break;
  }
}

// True for what two ends do once they are connected, and before one of them gives up.
bool is_of_exchange(const Record& record) {
  const bool is_packet = record.kind >= Kind::packet_sent && record.kind <= Kind::packet_dropped;
  const bool is_completion =
      record.kind == Kind::completion_pushed || record.kind == Kind::completion_polled;
  return is_packet || (is_completion && record.code == 0);
}

// From the first request's post to the last one's poll; of a QP without requests of its own from
// its first packet or completion to its last.
void Timekeeper::find_span() {
  for (const At at : qp_.requests) {
    const Request& request = story_.requests[at];
    if (request.is_receive) continue;
    for (const At event :
         {request.posted, request.taken, request.acknowledged, request.pushed, request.polled}) {
      if (event == kNowhere) continue;
      first_ns_ = std::min(first_ns_, story_.time_ns(event));
      last_ns_ = std::max(last_ns_, story_.time_ns(event));
    }
    if (request.pushed == kNowhere && request.acknowledged == kNowhere) is_open_ = true;
  }
  const bool is_all = first_ns_ > last_ns_;
  for (const Record& record : story_.trace->records) {
    if (record.device != qp_.device || record.qpn != qp_.qpn) continue;
    const bool is_counted = is_all && is_of_exchange(record);
    if (is_counted) first_ns_ = std::min(first_ns_, record.time_ns);
    if (is_counted || is_open_) last_ns_ = std::max(last_ns_, record.time_ns);
  }
}

void Timekeeper::look_at_records() {
  for (const Record& record : story_.trace->records)
    if (record.device == qp_.device && record.qpn == qp_.qpn) on_event(record);
  if (waits_since_ns_ != kNot) spend(waits_for_, waits_since_ns_, last_ns_);
  if (rnr_since_ns_ != kNot) spend(Reason::rnr, rnr_since_ns_, last_ns_);
  on_answer(last_ns_);
}

TimeSpent Timekeeper::measure() {
  find_span();
  if (first_ns_ > last_ns_) return spent_;
  look_at_records();
  look_at_requests();
  std::ranges::stable_sort(changes_, {}, &Change::ns);
  std::array<int, kReasons> active{};
  uint64_t now_ns = first_ns_;
  const auto pass = [&](uint64_t until_ns) {
    size_t reason = kReasons - 1;
    while (reason > 0 && active[reason] == 0) --reason;
    spent_.ns[reason] += until_ns - now_ns;
    now_ns = until_ns;
  };
  for (const Change& change : changes_) {
    pass(std::clamp(change.ns, now_ns, last_ns_));
    active[static_cast<size_t>(change.reason)] += change.by;
  }
  pass(last_ns_);
  spent_.whole_ns = last_ns_ - first_ns_;
  return spent_;
}

struct Sentence {
  const char* what;
  const char* advice;
};

// By Reason.
constexpr Sentence kSentences[kReasons] = {
    {"nothing was posted", "The program itself takes that time: post earlier, or more at once."},
    {"all was done, and the program had not polled it",
     "Poll sooner or in another thread, ask for events, or have fewer requests signaled."},
    {"requests were posted, and the NIC had not taken them",
     "The NIC was busy with others, or the QP with what was before them."},
    {"packets and answers were under way",
     "That is the network and the other end: larger messages, and more of them under way at a "
     "time, make more of it."},
    {"the QP was not in RTS", "Connect before posting."},
    {"a local request waited for those before it",
     "Bind and invalidate before what may take long, or on a QP of its own."},
    {"its rate held it back", "Congestion control, or a rate limit, sets that rate."},
    {"its window was full", "A larger window (limits of the device), or a shorter way, helps."},
    {"requests with a fence waited for READs and atomics before them",
     "Leave out IBV_SEND_FENCE where a request does not need what those bring."},
    {"as many READs and atomics as max_rd_atomic allows were outstanding",
     "Raise max_rd_atomic here, and max_dest_rd_atomic at the other end."},
    {"what was lost was missed and sent again",
     "Look for what takes packets: --as ladder shows which, and by which impairment."},
    {"an ACK timeout ran",
     "Packets or their answers were lost, with none behind them to tell of it: a smaller timeout "
     "of the QP shortens the wait."},
    {"the receiver was not ready (RNR)",
     "Have the other end post its receives before they are needed, more of them, or choose a "
     "smaller min_rnr_timer there."},
};

std::string name_of(const Story& story, At at) {
  const Qp& qp = story.qps[at];
  std::string more = qp.type == 0 ? "" : qp_type_text(qp.type);
  const std::string program = program_text(story.trace->names, qp.program);
  if (!program.empty()) more += (more.empty() ? "" : ", ") + program;
  return qp_text(story, at) + (more.empty() ? "" : " (" + more + ")");
}

struct Counts {
  uint64_t sent = 0, lost = 0, again = 0, requests = 0, failed = 0, answers_lost = 0;
  At first_lost = kNowhere;  // of Story::packets
};

void count_packets(const Story& story, At at, Counts& counts) {
  for (At i = 0; i < story.packets.size(); ++i) {
    const Packet& packet = story.packets[i];
    if (packet.sent == kNowhere || packet.is_copy) continue;
    const Record& record = story.record(packet.sent);
    const bool is_own = story.find_qp(record.device, record.qpn) == at;
    const bool is_answer = (record.flags & flag::kResponse) != 0;
    if (is_own) {
      ++counts.sent;
      counts.lost += packet.lost != kNowhere ? 1 : 0;
      counts.again += (record.flags & flag::kRetransmission) != 0 ? 1 : 0;
    } else if (!is_answer || packet.connection == kNowhere ||
               story.connections[packet.connection].ends[packet.from_first ? 1 : 0] != at) {
      continue;
    } else {
      counts.answers_lost += packet.lost != kNowhere ? 1 : 0;
    }
    if (packet.lost != kNowhere && counts.first_lost == kNowhere) counts.first_lost = i;
  }
}

Counts count(const Story& story, At at) {
  Counts counts;
  count_packets(story, at, counts);
  for (const At request : story.qps[at].requests) {
    const Request& it = story.requests[request];
    counts.requests += it.is_receive ? 0 : 1;
    counts.failed += it.pushed != kNowhere && story.record(it.pushed).code != 0 ? 1 : 0;
  }
  return counts;
}

void tell_counts(const Story& story, At at, const TimeSpent& spent, std::ostream& out) {
  const Counts counts = count(story, at);
  out << name_of(story, at);
  if (story.qps[at].peer != kNowhere) out << ", to " << name_of(story, story.qps[at].peer);
  out << ":\n"
      << duration_text(spent.whole_ns)
      << (counts.requests == 0 ? " from its first packet to its last, "
                               : " from its first post to its last poll, ")
      << counts.requests << (counts.requests == 1 ? " request, " : " requests, ") << counts.sent
      << " packets sent, " << counts.lost << " of them lost, " << counts.again << " sent again";
  if (counts.answers_lost != 0) out << ", " << counts.answers_lost << " answers lost";
  if (counts.failed != 0)
    out << ", " << counts.failed << (counts.failed == 1 ? " completion" : " completions")
        << " with an error";
  out << ".\n";
  if (counts.first_lost == kNowhere) return;
  const Packet& packet = story.packets[counts.first_lost];
  const Record& lost = story.record(packet.header());
  out << "Lost first: " << packet_opcode_text(lost.opcode) << ", PSN " << lost.psn << ", by "
      << story.trace->names.text(Table::impairment, story.record(packet.lost).program) << ".\n";
}

// Says what an advice has to say of this QP alone.
void tell_more(const Story& story, At at, Reason reason, std::ostream& out) {
  const Qp& qp = story.qps[at];
  if (reason == Reason::timeout) {
    uint8_t timeout = 0;
    for (const Record& record : story.trace->records)
      if (record.kind == Kind::qp_state && record.device == qp.device && record.qpn == qp.qpn &&
          record.count != 0)
        timeout = QpTimers::unpacked(record.count).timeout;
    if (timeout != 0 && timeout < 32)
      out << " It is " << static_cast<int>(timeout) << " now, "
          << duration_text((uint64_t{4096} << timeout)) << '.';
  }
  if (reason == Reason::rnr && qp.peer != kNowhere && look_at_receives(story, qp.peer).is_slow())
    out << " But it is slow to take what it has: completions of receives lay in its CQ, not "
           "polled, "
           "when it refused.";
}

void tell_of(const Story& story, At at, std::ostream& out) {
  const TimeSpent spent = time_spent(story, at);
  tell_counts(story, at, spent, out);
  const auto& requests = story.qps[at].requests;
  if (std::ranges::all_of(requests, [&](At r) { return story.requests[r].is_receive; })) {
    out << "It has sent no requests of its own, and has answered those of others.\n";
    tell_failure(story, at, out);
    return tell_receives(story, at, spent.whole_ns, out);
  }
  std::vector<size_t> order(kReasons);
  for (size_t i = 0; i < kReasons; ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return spent.ns[i]; });
  tell_failure(story, at, out);
  const auto percent = [&](size_t i) {
    return static_cast<double>(spent.ns[i]) * 100 /
           static_cast<double>(std::max<uint64_t>(spent.whole_ns, 1));
  };
  for (const size_t i : order) {
    if (percent(i) < 1) continue;
    out << "  " << static_cast<int>(percent(i) + 0.5) << " % of it, " << duration_text(spent.ns[i])
        << ", " << kSentences[i].what << ".\n";
  }
  // Advice for what matters, but for what only the program itself may change.
  for (const size_t i : order) {
    if (percent(i) < 10) continue;
    out << kSentences[i].advice;
    tell_more(story, at, static_cast<Reason>(i), out);
    out << '\n';
  }
  tell_unordered(story, at, out);
  tell_receives(story, at, spent.whole_ns, out);
}

}  // namespace

TimeSpent time_spent(const Story& story, At qp) { return Timekeeper(story, qp).measure(); }

bool tell_why(const Story& story, const Selection& selection, std::ostream& out) {
  std::vector<At> selected;
  for (At at = 0; at < story.qps.size(); ++at)
    if (story.qps[at].has_records && selection.takes(story.qps[at])) selected.push_back(at);
  std::ranges::stable_sort(selected, {}, [&](At at) { return story.qps[at].qpn; });
  const char* between = "";
  for (const At at : selected) {
    out << between;
    tell_of(story, at, out);
    between = "\n";
  }
  return !selected.empty();
}

}  // namespace rocemu::trace
