#include "emulator/transport/qp/wait_reason.h"

namespace rocemu::transport {

namespace {

using Next = WaitFacts::Next;

// Returns what holds back the frames of a QP that has some.
WaitReason rate_or_turn(const WaitFacts& facts) {
  if (facts.pace_left_ns != 0) return WaitReason::pace;
  return facts.rate_limit_left_ns != 0 ? WaitReason::rate_limit : WaitReason::turn;
}

// Returns what keeps the next packet from leaving. Precondition: there is something to send.
WaitReason find_obstacle(const WaitFacts& facts) {
  if (facts.next == Next::not_sent)
    return facts.requests > 1 ? WaitReason::earlier : WaitReason::turn;
  if (facts.window_is_full) return WaitReason::window;
  if (facts.fenced) return WaitReason::fence;
  if (facts.reads_are_full) return WaitReason::reads;
  return rate_or_turn(facts);
}

}  // namespace

WaitReason find_wait_reason(const WaitFacts& facts) {
  if (facts.rnr_left_ns != 0) return WaitReason::rnr;
  if (facts.requests > 0 && facts.retries > 0) return WaitReason::retransmission;
  const bool may_go_on = facts.next == Next::unknown ? facts.may_take : facts.may_send;
  if (facts.next != Next::none && may_go_on) return find_obstacle(facts);
  if (facts.requests > 0) return WaitReason::answer;
  if (facts.next != Next::none) return WaitReason::state;
  if (facts.queued_responses > 0) return rate_or_turn(facts);
  if (facts.unread_completions > 0) return WaitReason::polls;
  return facts.told_not_ready ? WaitReason::receives : WaitReason::none;
}

}  // namespace rocemu::transport
