#include "emulator/trace/show/why.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

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
  void look_at_requests();
  void look_at_records();
  void on_event(const Record& record);
  void on_sent(uint64_t now_ns);
  void on_answer(uint64_t now_ns);
  static Reason reason_of(Cause cause);

  const Story& story_;
  const Qp& qp_;
  TimeSpent spent_;
  std::vector<Change> changes_;
  uint64_t first_ns_ = ~uint64_t{0}, last_ns_ = 0;
  // What is going on, and since when; ~0: it is not.
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
    case Cause::no_receives:
      return Reason::no_receives;
    case Cause::pace:
      return Reason::pace;
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
  if (rnr_since_ns_ != kNot) spend(Reason::rnr, rnr_since_ns_, now_ns);
  waits_since_ns_ = rnr_since_ns_ = kNot;
  sent_ns_ = now_ns;
}

void Timekeeper::on_answer(uint64_t now_ns) {
  if (repair_since_ns_ != kNot) spend(Reason::repair, repair_since_ns_, now_ns);
  repair_since_ns_ = kNot;
}

void Timekeeper::on_event(const Record& record) {
  switch (record.kind) {
    case Kind::packet_sent:
      if ((record.flags & flag::kResponse) == 0) on_sent(record.time_ns);
      if ((record.flags & flag::kRetransmission) != 0 && repair_since_ns_ == kNot &&
          record.cause != Cause::rnr_nak)
        repair_since_ns_ = record.time_ns;
      break;
    case Kind::waits:
      if (waits_since_ns_ != kNot) spend(waits_for_, waits_since_ns_, record.time_ns);
      waits_for_ = reason_of(record.cause);
      waits_since_ns_ = record.time_ns;
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

void Timekeeper::look_at_records() {
  for (const Record& record : story_.trace->records) {
    if (record.device != qp_.device || record.qpn != qp_.qpn) continue;
    first_ns_ = std::min(first_ns_, record.time_ns);
    last_ns_ = std::max(last_ns_, record.time_ns);
    on_event(record);
  }
  if (waits_since_ns_ != kNot) spend(waits_for_, waits_since_ns_, last_ns_);
  if (rnr_since_ns_ != kNot) spend(Reason::rnr, rnr_since_ns_, last_ns_);
  on_answer(last_ns_);
}

TimeSpent Timekeeper::measure() {
  look_at_records();
  if (first_ns_ > last_ns_) return spent_;
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
    {"its rate held it back", "Congestion control, or a rate limit, sets that rate."},
    {"its window was full", "A larger window (limits of the device), or a shorter way, helps."},
    {"requests with a fence waited for READs and atomics before them",
     "Leave out IBV_SEND_FENCE where a request does not need what those bring."},
    {"as many READs and atomics as max_rd_atomic allows were outstanding",
     "Raise max_rd_atomic here, and max_dest_rd_atomic at the other end."},
    {"the other end had no receives left, by its credits",
     "Have the other end post more receives, and sooner."},
    {"what was lost was sent again",
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
  std::string text =
      "QP " + hexadecimal(qp.qpn) + " of " +
      (qp.device == kNoDevice ? "another NIC" : story.trace->names.text(Table::device, qp.device));
  std::string more = qp.type == 0 ? "" : qp_type_text(qp.type);
  const std::string program = program_text(story.trace->names, qp.program);
  if (!program.empty()) more += (more.empty() ? "" : ", ") + program;
  return more.empty() ? text : text + " (" + more + ")";
}

void tell_counts(const Story& story, At at, const TimeSpent& spent, std::ostream& out) {
  uint64_t sent = 0, lost = 0, again = 0, requests = 0, failed = 0;
  for (const Packet& packet : story.packets) {
    if (packet.sent == kNowhere || packet.is_copy) continue;
    const Record& record = story.record(packet.sent);
    if (story.find_qp(record.device, record.qpn) != at) continue;
    ++sent;
    lost += packet.lost != kNowhere ? 1 : 0;
    again += (record.flags & flag::kRetransmission) != 0 ? 1 : 0;
  }
  for (const At request : story.qps[at].requests) {
    const Request& it = story.requests[request];
    requests += it.is_receive ? 0 : 1;
    failed += it.pushed != kNowhere && story.record(it.pushed).code != 0 ? 1 : 0;
  }
  out << name_of(story, at);
  if (story.qps[at].peer != kNowhere) out << ", to " << name_of(story, story.qps[at].peer);
  out << ":\n"
      << duration_text(spent.whole_ns) << " from its first event to its last, " << requests
      << " requests, " << sent << " packets sent, " << lost << " of them lost, " << again
      << " sent again";
  if (failed != 0) out << ", " << failed << " completions with an error";
  out << ".\n";
}

void tell_of(const Story& story, At at, std::ostream& out) {
  const TimeSpent spent = time_spent(story, at);
  tell_counts(story, at, spent, out);
  const auto& requests = story.qps[at].requests;
  if (std::ranges::all_of(requests, [&](At r) { return story.requests[r].is_receive; })) {
    out << "It has sent no requests of its own, and has answered those of others.\n";
    return;
  }
  std::vector<size_t> order(kReasons);
  for (size_t i = 0; i < kReasons; ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return spent.ns[i]; });
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
  for (const size_t i : order)
    if (percent(i) >= 10) out << kSentences[i].advice << '\n';
}

}  // namespace

TimeSpent time_spent(const Story& story, At qp) { return Timekeeper(story, qp).measure(); }

bool tell_why(const Story& story, uint32_t qpn, std::ostream& out) {
  bool found = false;
  for (At at = 0; at < story.qps.size(); ++at) {
    if (story.qps[at].qpn != qpn || !story.qps[at].has_records) continue;
    if (found) out << '\n';
    found = true;
    tell_of(story, at, out);
  }
  return found;
}

}  // namespace rocemu::trace
