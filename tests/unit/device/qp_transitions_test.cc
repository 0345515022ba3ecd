#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <utility>

#include "emulator/device/qp_attributes.h"

using namespace rocemu::device;
using rocemu::transport::QpState;

namespace {

constexpr QpState kStates[] = {QpState::reset,
                               QpState::init,
                               QpState::ready_to_receive,
                               QpState::ready_to_send,
                               QpState::send_queue_drain,
                               QpState::send_queue_error,
                               QpState::error};

// The least each legal change takes (ibv_modify_qp(3), the table for RC).
const std::map<std::pair<QpState, QpState>, uint32_t> kLegal = {
    {{QpState::reset, QpState::init}, kPkeyIndex | kPort | kAccessFlags},
    {{QpState::init, QpState::init}, 0},
    {{QpState::init, QpState::ready_to_receive},
     kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer},
    {{QpState::ready_to_receive, QpState::ready_to_send},
     kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxQpRdAtomic},
    {{QpState::ready_to_send, QpState::ready_to_send}, 0},
    {{QpState::ready_to_send, QpState::send_queue_drain}, 0},
    {{QpState::send_queue_drain, QpState::ready_to_send}, 0},
    {{QpState::send_queue_drain, QpState::send_queue_drain}, 0},
};

}  // namespace

TEST_CASE("Every pair of states is legal or not, as the man page has it") {
  for (QpState from : kStates) {
    for (QpState to : kStates) {
      INFO(static_cast<int>(from) << " to " << static_cast<int>(to));
      if (to == QpState::reset || to == QpState::error) {
        CHECK(check_rc_transition(from, to, kState) == 0);
        continue;
      }
      const auto legal = kLegal.find({from, to});
      if (legal == kLegal.end()) {
        CHECK(check_rc_transition(from, to, kState) == EINVAL);
        continue;
      }
      const uint32_t required = legal->second;
      CHECK(check_rc_transition(from, to, kState | required) == 0);
      // None of them may be missing, and a foreign one spoils the change.
      for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if ((required & bit) != 0)
          CHECK(check_rc_transition(from, to, kState | (required & ~bit)) == EINVAL);
      }
      CHECK(check_rc_transition(from, to, kState | required | kQkey) == EINVAL);
    }
  }
}

TEST_CASE("To RESET and to ERROR goes nothing but the state") {
  CHECK(check_rc_transition(QpState::ready_to_send, QpState::error, kState | kTimeout) == EINVAL);
  CHECK(check_rc_transition(QpState::ready_to_send, QpState::reset, kState | kAv) == EINVAL);
}
