// The NAK that a responder has outstanding for the PSN that it expects (IBTA vol 1, 9.7.5.1).
//
// The first packet ahead of the expected one draws a NAK for a sequence error; its PSN is the NAK's
// trigger. The rest is dropped until the expected packet comes. A packet that is not behind the
// trigger and comes again shows that the requester has gone back and the expected packet was lost
// once more: another NAK, or its ACK timer would have to run out. After an RNR NAK the packets that
// were in flight behind the refused one are dropped, too, and the first of them is the trigger.
//
//   none       --ahead--------> sequence   NAK
//   sequence   --ahead--------> sequence   NAK, when the requester has gone back
//   any        --not ready----> rnr        RNR NAK
//   rnr        --ahead--------> rnr        the first one: it becomes the trigger
//   rnr        --ahead--------> sequence   NAK, when the requester has gone back
//   any        --executed-----> none, or withdrawn when the NAK had not left yet
//   withdrawn  --renew--------> sequence   NAK, when the trigger is not executed yet; or none
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/wire/types.h"

namespace rocemu::transport {

class NakState {
 public:
  // The connection begins: nothing has been refused.
  void reset() { state_ = State::none; }

  bool outstanding() const { return state_ == State::sequence || state_ == State::rnr; }

  // The last word was that no receive is there.
  bool not_ready() const { return state_ == State::rnr; }

  // A packet ahead of the expected one has come. True: it draws a NAK for a sequence error.
  bool on_ahead(wire::Psn psn) {
    if (outstanding()) {
      const bool gone_back = trigger_ && !psn.after(*trigger_);
      if (!trigger_) trigger_ = psn;
      if (!gone_back) return false;
    }
    state_ = State::sequence;
    trigger_ = psn;
    return true;
  }

  // The expected packet draws an RNR NAK.
  void on_not_ready() {
    state_ = State::rnr;
    trigger_.reset();
  }

  // The expected packet has been executed. `unsent`: a NAK for it had not left and was taken back.
  void on_executed(bool unsent) { state_ = unsent ? State::withdrawn : State::none; }

  // A NAK that was taken back asked for more than the packet that has come: its trigger, and what
  // came since, was thrown away. True: it goes out for the PSN that is expected now.
  bool renew(wire::Psn expected) {
    if (state_ != State::withdrawn) return false;
    state_ = trigger_ && !trigger_->before(expected) ? State::sequence : State::none;
    return state_ == State::sequence;
  }

 private:
  enum class State : uint8_t { none, sequence, rnr, withdrawn };

  State state_ = State::none;
  std::optional<wire::Psn> trigger_;
};

}  // namespace rocemu::transport
