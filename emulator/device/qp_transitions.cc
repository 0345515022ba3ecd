// The state changes of an RC QP as a table: IBTA vol 1 table 91, which Linux's ib_modify_qp_is_ok
// follows.
#include <cerrno>

#include "emulator/device/qp_attributes.h"

namespace rocemu::device {

namespace {

using transport::QpState;

struct Transition {
  QpState from;
  QpState to;
  uint32_t required;
  uint32_t optional;
};

constexpr uint32_t kAlways = kAccessFlags | kAltPath | kMinRnrTimer | kPathMigState;

constexpr Transition kTransitions[] = {
    {QpState::reset, QpState::init, kPkeyIndex | kPort | kAccessFlags, 0},
    {QpState::init, QpState::init, 0, kPkeyIndex | kPort | kAccessFlags},
    {QpState::init, QpState::ready_to_receive,
     kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
     kAltPath | kAccessFlags | kPkeyIndex},
    {QpState::ready_to_receive, QpState::ready_to_send,
     kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxQpRdAtomic, kCurState | kAlways},
    {QpState::ready_to_send, QpState::ready_to_send, 0, kCurState | kAlways},
    {QpState::ready_to_send, QpState::send_queue_drain, 0, kEnSqdAsyncNotify},
    {QpState::send_queue_drain, QpState::ready_to_send, 0, kCurState | kAlways},
    {QpState::send_queue_drain, QpState::send_queue_drain, 0,
     kPort | kAv | kTimeout | kRetryCount | kRnrRetry | kMaxQpRdAtomic | kMaxDestRdAtomic |
         kPkeyIndex | kAlways},
};

}  // namespace

int check_rc_transition(QpState from, QpState to, uint32_t attr_mask) {
  const uint32_t given = attr_mask & ~uint32_t{kState};
  // From every state to RESET and to ERROR, with nothing else.
  if (to == QpState::reset || to == QpState::error) return given == 0 ? 0 : EINVAL;
  for (const Transition& transition : kTransitions) {
    if (transition.from != from || transition.to != to) continue;
    if ((given & transition.required) != transition.required) return EINVAL;
    return (given & ~(transition.required | transition.optional)) == 0 ? 0 : EINVAL;
  }
  return EINVAL;
}

}  // namespace rocemu::device
