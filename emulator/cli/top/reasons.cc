#include "emulator/cli/top/reasons.h"

#include <algorithm>
#include <iterator>

#include "emulator/cli/top/numbers.h"

namespace rocemu::cli::top {
namespace {

struct Reason {
  std::string_view name;
  const char* word;
  const char* sentence;
};

constexpr Reason kReasons[] = {
    {"state", "state",
     "Requests are posted, but in this state the QP takes none. Bring it to RTS (ibv_modify_qp)."},
    {"rnr", "RNR wait",
     "The peer had no receive posted for the last SEND or WRITE WITH IMMEDIATE and asked for a "
     "pause. Have it post receives earlier, or more of them."},
    {"window", "window",
     "As many packets are in flight as congestion control allows. Look at the peer, the path and "
     "what narrows the window: losses, marks, transport.window_packets."},
    {"fence", "fence",
     "The next request has IBV_SEND_FENCE and waits for READs and atomics before it."},
    {"reads", "READs out",
     "As many READs and atomics are outstanding as max_rd_atomic allows. Raise it at both ends, or "
     "make the READs larger."},
    {"earlier", "earlier",
     "The next request binds or invalidates, or is faulty, and waits until those before it are "
     "over."},
    {"pace", "pace", "Congestion control holds the next packet back: its rate is used up for now."},
    {"rate_limit", "rate limit",
     "The rate that the program has set (ibv_modify_qp_rate_limit) is used up for now."},
    {"turn", "turn", "Nothing keeps it: it sends when its turn at the port comes."},
    {"answer", "answer",
     "All is sent; the peer has to answer. If that lasts, look at the path, and at the peer's QP."},
    {"retransmission", "sent again",
     "What is in flight has been sent again, and nothing was acknowledged since: packets or "
     "answers are lost, or the peer is gone."},
    {"receives", "receives",
     "A peer wants to send and no receive is posted here; it has been told so (RNR NAK). Post "
     "receives."},
    {"polls", "nobody polls",
     "Nothing is under way, and completions lie in the CQ: the program does not poll it."},
    {"pause", "path paused",
     "The port was paused by flow control (PFC) for most of the time. Look at the switches' queues "
     "(rocemu status, NETWORK PORT)."},
};

const Reason* find(std::string_view name) {
  const auto* const found = std::ranges::find(kReasons, name, &Reason::name);
  return found == std::end(kReasons) ? nullptr : found;
}

}  // namespace

std::string reason_word(std::string_view waits_for) {
  if (waits_for.empty()) return "-";
  const Reason* const reason = find(waits_for);
  return reason == nullptr ? std::string(waits_for) : reason->word;
}

std::string reason_sentence(const Qp& qp) {
  if (qp.waits_for.empty()) return "";
  const Reason* const reason = find(qp.waits_for);
  if (reason == nullptr) return "The NIC says: " + qp.waits_for + ".";
  std::string sentence = reason->sentence;
  if (qp.now.wait_left_us)
    sentence += " It goes on in " + short_time(*qp.now.wait_left_us) + " at the earliest.";
  return sentence;
}

}  // namespace rocemu::cli::top
