// "Receiver not ready" at the first message of a connection, although a receive is posted: a
// responder may say so whenever it lacks what the message takes (IBTA vol 1, 9.7.5.2.8), as NICs do
// whose receive is still being fetched. The requester sends the message again.
//
// Guarantees: RNR is said at most once for each connection, and only over RC; a flush finds all
// receives.
#pragma once

#include "emulator/shake/common/dice.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::shake {

class FirstRnr final : public transport::ReceiveQueue {
 public:
  // `inner` outlives this.
  FirstRnr(transport::ReceiveQueue& inner, Dice dice) : inner_(inner), dice_(dice) {}

  // The QP is in this state now; RTR begins a connection.
  void on_state(transport::QpState state) {
    if (state == transport::QpState::ready_to_receive) {
      not_ready_ = dice_.roll(kNotReadyPpm);
    } else if (state != transport::QpState::ready_to_send) {
      not_ready_ = false;
    }
  }
  bool pop(transport::ReceiveWork& work) noexcept override {
    if (!not_ready_) return inner_.pop(work);
    not_ready_ = false;
    return false;
  }
  uint32_t waiting() const noexcept override { return inner_.waiting(); }

 private:
  static constexpr uint32_t kNotReadyPpm = 750'000;

  transport::ReceiveQueue& inner_;
  Dice dice_;
  bool not_ready_ = false;
};

}  // namespace rocemu::shake
