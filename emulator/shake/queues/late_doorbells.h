// A doorbell that the device sees late: what was posted to a send queue that had run empty is taken
// a while later.
//
// Guarantees: no request is lost or taken out of its order, and a queue whose QP is in ERROR is
// flushed all the same, since the doorbell is rung again when the time is over.
#pragma once

#include <functional>

#include "emulator/shake/common/agenda.h"
#include "emulator/shake/common/dice.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::shake {

class LateDoorbells final : public transport::SendQueue, private Agenda::Item {
 public:
  // `ring` is Endpoint::on_doorbell() for the queue's QP. `inner` outlives this.
  LateDoorbells(transport::SendQueue& inner, Agenda& agenda, Dice dice, std::function<void()> ring)
      : Item(agenda), inner_(inner), dice_(dice), ring_(std::move(ring)) {}

  bool pop(transport::SendWork& work) noexcept override;
  void release(uint32_t count) noexcept override { inner_.release(count); }
  uint32_t waiting() const noexcept override { return inner_.waiting(); }
  uint32_t released() const noexcept override { return inner_.released(); }

 private:
  void on_time() noexcept override;

  transport::SendQueue& inner_;
  Dice dice_;
  std::function<void()> ring_;
  bool empty_ = true;    // it was, when it was last looked into
  bool unseen_ = false;  // the doorbell
};

}  // namespace rocemu::shake
