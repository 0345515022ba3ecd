// The state changes of a QP as a table: IBTA vol 1 table 91, which Linux's ib_modify_qp_is_ok
// follows; XRC as there.
#include <cerrno>

#include "emulator/device/attributes/qp_attributes.h"

namespace rocemu::device {

namespace {

using transport::QpState;
using transport::Service;

constexpr unsigned bit(Service service) { return 1u << static_cast<unsigned>(service); }
constexpr unsigned kRc = bit(Service::rc);
constexpr unsigned kUc = bit(Service::uc);
constexpr unsigned kUd = bit(Service::ud);
constexpr unsigned kXrcSend = bit(Service::xrc_send);
constexpr unsigned kXrcReceive = bit(Service::xrc_receive);
constexpr unsigned kRaw = bit(Service::raw_packet);
constexpr unsigned kConnected = kRc | kUc | kXrcSend | kXrcReceive;
constexpr unsigned kResponds = kRc | kXrcReceive;  // to requests, with RNR NAKs and READ data

struct Transition {
  unsigned services;
  QpState from;
  QpState to;
  uint32_t required;
  uint32_t optional;
};

constexpr uint32_t kPathChanges = kAccessFlags | kAltPath | kPathMigState;
constexpr uint32_t kConnect = kAv | kPathMtu | kDestQpn | kRqPsn;
constexpr uint32_t kRequester = kRetryCount | kRnrRetry | kMaxQpRdAtomic;

constexpr Transition kTransitions[] = {
    {kConnected, QpState::reset, QpState::init, kPkeyIndex | kPort | kAccessFlags, 0},
    {kUd, QpState::reset, QpState::init, kPkeyIndex | kPort | kQkey, 0},

    {kRaw, QpState::reset, QpState::init, kPort, 0},
    {kRaw, QpState::init, QpState::init, 0, kPort},
    {kRaw, QpState::init, QpState::ready_to_receive, 0, 0},
    {kRaw, QpState::ready_to_receive, QpState::ready_to_send, 0, kCurState | kRateLimit},
    {kRaw, QpState::ready_to_send, QpState::ready_to_send, 0, kCurState | kRateLimit},
    {kRaw, QpState::ready_to_send, QpState::send_queue_drain, 0, kEnSqdAsyncNotify},
    {kRaw, QpState::send_queue_drain, QpState::ready_to_send, 0, kCurState},
    {kRaw, QpState::send_queue_error, QpState::ready_to_send, 0, kCurState},

    {kConnected, QpState::init, QpState::init, 0, kPkeyIndex | kPort | kAccessFlags},
    {kUd, QpState::init, QpState::init, 0, kPkeyIndex | kPort | kQkey},

    {kResponds, QpState::init, QpState::ready_to_receive,
     kConnect | kMaxDestRdAtomic | kMinRnrTimer, kAltPath | kAccessFlags | kPkeyIndex},
    {kUc | kXrcSend, QpState::init, QpState::ready_to_receive, kConnect,
     kAltPath | kAccessFlags | kPkeyIndex},
    {kUd, QpState::init, QpState::ready_to_receive, 0, kPkeyIndex | kQkey},

    {kRc, QpState::ready_to_receive, QpState::ready_to_send, kTimeout | kSqPsn | kRequester,
     kCurState | kPathChanges | kMinRnrTimer},
    {kXrcSend, QpState::ready_to_receive, QpState::ready_to_send, kTimeout | kSqPsn | kRequester,
     kCurState | kPathChanges},
    {kXrcReceive, QpState::ready_to_receive, QpState::ready_to_send, kTimeout | kSqPsn,
     kCurState | kPathChanges | kMinRnrTimer},
    {kUc, QpState::ready_to_receive, QpState::ready_to_send, kSqPsn, kCurState | kPathChanges},
    {kUd, QpState::ready_to_receive, QpState::ready_to_send, kSqPsn, kCurState | kQkey},

    {kResponds, QpState::ready_to_send, QpState::ready_to_send, 0,
     kCurState | kPathChanges | kMinRnrTimer},
    {kUc | kXrcSend, QpState::ready_to_send, QpState::ready_to_send, 0, kCurState | kPathChanges},
    {kUd, QpState::ready_to_send, QpState::ready_to_send, 0, kCurState | kQkey},

    {kConnected | kUd, QpState::ready_to_send, QpState::send_queue_drain, 0, kEnSqdAsyncNotify},

    {kResponds, QpState::send_queue_drain, QpState::ready_to_send, 0,
     kCurState | kPathChanges | kMinRnrTimer},
    {kUc | kXrcSend, QpState::send_queue_drain, QpState::ready_to_send, 0,
     kCurState | kPathChanges},
    {kUd, QpState::send_queue_drain, QpState::ready_to_send, 0, kCurState | kQkey},

    {kRc, QpState::send_queue_drain, QpState::send_queue_drain, 0,
     kPort | kAv | kTimeout | kRequester | kMaxDestRdAtomic | kPkeyIndex | kMinRnrTimer |
         kPathChanges},
    {kXrcSend, QpState::send_queue_drain, QpState::send_queue_drain, 0,
     kPort | kAv | kTimeout | kRequester | kPkeyIndex | kPathChanges},
    {kXrcReceive, QpState::send_queue_drain, QpState::send_queue_drain, 0,
     kPort | kAv | kTimeout | kMaxDestRdAtomic | kPkeyIndex | kMinRnrTimer | kPathChanges},
    {kUc, QpState::send_queue_drain, QpState::send_queue_drain, 0, kAv | kPkeyIndex | kPathChanges},
    {kUd, QpState::send_queue_drain, QpState::send_queue_drain, 0, kPkeyIndex | kQkey},

    {kUc, QpState::send_queue_error, QpState::ready_to_send, 0, kCurState | kAccessFlags},
    {kUd, QpState::send_queue_error, QpState::ready_to_send, 0, kCurState | kQkey},
};

}  // namespace

int check_transition(Service service, QpState from, QpState to, uint32_t attr_mask) {
  const uint32_t given = attr_mask & ~uint32_t{kState};
  // Every state leads to RESET and to ERROR, with no other attribute.
  if (to == QpState::reset || to == QpState::error) return given == 0 ? 0 : EINVAL;
  for (const Transition& transition : kTransitions) {
    if ((transition.services & bit(service)) == 0 || transition.from != from || transition.to != to)
      continue;
    if ((given & transition.required) != transition.required) return EINVAL;
    return (given & ~(transition.required | transition.optional)) == 0 ? 0 : EINVAL;
  }
  return EINVAL;
}

}  // namespace rocemu::device
