#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <utility>

#include "emulator/device/attributes/qp_attributes.h"

using namespace rocemu::device;
using rocemu::transport::QpState;
using rocemu::transport::Service;

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
        CHECK(check_transition(Service::rc, from, to, kState) == 0);
        continue;
      }
      const auto legal = kLegal.find({from, to});
      if (legal == kLegal.end()) {
        CHECK(check_transition(Service::rc, from, to, kState) == EINVAL);
        continue;
      }
      const uint32_t required = legal->second;
      CHECK(check_transition(Service::rc, from, to, kState | required) == 0);
      // None of them may be missing, and a foreign one spoils the change.
      for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if ((required & bit) != 0)
          CHECK(check_transition(Service::rc, from, to, kState | (required & ~bit)) == EINVAL);
      }
      CHECK(check_transition(Service::rc, from, to, kState | required | kQkey) == EINVAL);
    }
  }
}

TEST_CASE("To RESET and to ERROR goes nothing but the state") {
  CHECK(check_transition(Service::rc, QpState::ready_to_send, QpState::error, kState | kTimeout) ==
        EINVAL);
  CHECK(check_transition(Service::rc, QpState::ready_to_send, QpState::reset, kState | kAv) ==
        EINVAL);
}

TEST_CASE("Each service has attributes of its own") {
  struct Row {
    Service service;
    uint32_t to_init, to_rtr, to_rts, foreign;
  };
  constexpr uint32_t kConnect = kAv | kPathMtu | kDestQpn | kRqPsn;
  constexpr uint32_t kRequester = kTimeout | kRetryCount | kRnrRetry | kMaxQpRdAtomic;
  constexpr Row kRows[] = {
      {Service::ud, kPkeyIndex | kPort | kQkey, 0, kSqPsn, kAccessFlags},
      {Service::uc, kPkeyIndex | kPort | kAccessFlags, kConnect, kSqPsn, kMinRnrTimer},
      {Service::xrc_send, kPkeyIndex | kPort | kAccessFlags, kConnect, kRequester | kSqPsn, kQkey},
      {Service::xrc_receive, kPkeyIndex | kPort | kAccessFlags,
       kConnect | kMaxDestRdAtomic | kMinRnrTimer, kTimeout | kSqPsn, kQkey},
  };
  for (const Row& row : kRows) {
    INFO(static_cast<int>(row.service));
    const auto check = [&](QpState from, QpState to, uint32_t required) {
      CHECK(check_transition(row.service, from, to, kState | required) == 0);
      for (uint32_t bit = 1; bit != 0; bit <<= 1)
        if ((required & bit) != 0)
          CHECK(check_transition(row.service, from, to, kState | (required & ~bit)) == EINVAL);
      CHECK(check_transition(row.service, from, to, kState | required | row.foreign) == EINVAL);
    };
    check(QpState::reset, QpState::init, row.to_init);
    check(QpState::init, QpState::ready_to_receive, row.to_rtr);
    check(QpState::ready_to_receive, QpState::ready_to_send, row.to_rts);
    check(QpState::ready_to_send, QpState::send_queue_drain, 0);
    check(QpState::send_queue_drain, QpState::ready_to_send, 0);
    const bool has_sqe = row.service == Service::ud || row.service == Service::uc;
    CHECK(check_transition(row.service, QpState::send_queue_error, QpState::ready_to_send,
                           kState) == (has_sqe ? 0 : EINVAL));
  }
}
