#include <algorithm>
#include <ostream>

#include "base/verbs/numbers.h"
#include "emulator/trace/show/findings.h"
#include "emulator/trace/show/vocabulary.h"

namespace rocemu::trace {

namespace {

constexpr uint8_t kFlushed = 5;

struct Advice {
  uint8_t status;
  const char* text;
};

// By completion status.
constexpr Advice kAdvice[] = {
    {1, "The local buffers are shorter than the message."},
    {2, "Is the request one that this QP may post, with memory of its own domain?"},
    {4,
     "The lkey or the address is not valid here, or no more: look at what is registered, with "
     "which rights, and at when it is deregistered."},
    {9,
     "The other end takes no such request: its message is longer than the receive, or its QP "
     "does not permit the operation."},
    {10,
     "The rkey or the address is not valid there, or no more, or the region does not permit "
     "this access: compare both with what the other end has registered, and with when it gave "
     "that up or made it anew."},
    {11, "The other end could not do it: look at its completions and events."},
    {12, "Nobody has answered: is the other end connected, alive, and reachable both ways?"},
    {13,
     "The other end had no receive for it each time: have it post more of them, and sooner, or "
     "raise rnr_retry (7 is for ever)."},
};

struct Failures {
  At first = kNowhere;  // of Story::requests
  uint64_t flushed = 0;
};

Failures look_for_failures(const Story& story, At qp) {
  Failures found;
  for (const At at : story.qps[qp].requests) {
    const At pushed = story.requests[at].pushed;
    if (pushed == kNowhere || story.record(pushed).code == 0) continue;
    if (story.record(pushed).code == kFlushed)
      ++found.flushed;
    else if (found.first == kNowhere || pushed < story.requests[found.first].pushed)
      found.first = at;
  }
  return found;
}

bool has_remote_address(uint8_t opcode) {
  switch (opcode) {
    case verbs::wr_opcode::kRdmaWrite:
    case verbs::wr_opcode::kRdmaWriteWithImm:
    case verbs::wr_opcode::kRdmaRead:
    case verbs::wr_opcode::kAtomicCmpAndSwp:
    case verbs::wr_opcode::kAtomicFetchAndAdd:
    case verbs::wr_opcode::kAtomicWrite:
    case verbs::wr_opcode::kFlush:
      return true;
    default:
      return false;
  }
}

void tell_refusal(const Story& story, const Request& request, std::ostream& out) {
  for (const At at : request.packets) {
    const Packet& packet = story.packets[at];
    if (packet.refused == kNowhere || packet.arrived == kNowhere) continue;
    const Record& refused = story.record(packet.refused);
    if (!refuses(refused.code) || (refused.code & 0x60) != 0x60) continue;
    out << " Its packet " << packet_opcode_text(story.record(packet.header()).opcode) << ", PSN "
        << refused.psn << ", was refused by "
        << qp_text(story, story.find_qp(refused.device, refused.qpn)) << ", by rule "
        << story.trace->names.text(Table::rule, refused.program) << '.';
    return;
  }
}

}  // namespace

std::string qp_text(const Story& story, At at) {
  if (at == kNowhere) return "another QP";
  const Qp& qp = story.qps[at];
  return "QP " + hexadecimal(qp.qpn) + " of " +
         (qp.device == kNoDevice ? "another NIC"
                                 : story.trace->names.text(Table::device, qp.device));
}

void tell_failure(const Story& story, At qp, std::ostream& out) {
  const Failures found = look_for_failures(story, qp);
  if (found.first == kNowhere) return;
  const Request& request = story.requests[found.first];
  const Record& end = story.record(request.pushed);
  const At asked_at = request.taken != kNowhere ? request.taken : request.posted;
  if (asked_at == kNowhere) {
    out << "A request";
  } else {
    const Record& asked = story.record(asked_at);
    out << (request.is_receive ? "A receive" : request_opcode_text(asked.opcode)) << " of "
        << asked.length_bytes << " B";
    if (!request.is_receive && has_remote_address(asked.opcode) && request.taken != kNowhere)
      out << " at " << hexadecimal(asked.value) << " by rkey " << hexadecimal(asked.detail);
  }
  out << ", wr_id " << hexadecimal(end.wr_id) << ", failed: " << status_text(end.code) << '.';
  tell_refusal(story, request, out);
  if (found.flushed != 0)
    out << ' ' << found.flushed << (found.flushed == 1 ? " other was" : " others were")
        << " flushed: the QP is in ERROR since.";
  out << '\n';
  const auto* const advice = std::ranges::find(kAdvice, end.code, &Advice::status);
  if (advice != std::end(kAdvice)) out << advice->text << '\n';
}

}  // namespace rocemu::trace
