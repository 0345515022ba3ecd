// A port whose link can have impairments: transmit is the direction from the port, receive the one
// to it.
#pragma once

#include "dpdk_io/port/port.h"
#include "impairment/assignment.h"
#include "impairment/link.h"
#include "network/impaired_link.h"

namespace rocemu::dpdk_io {

// LossWatch hears of the frames that a port or its link loses, before they are gone.
class LossWatch {
 public:
  virtual void on_loss(const rte_mbuf* frame, DropReason reason) noexcept = 0;

 protected:
  ~LossWatch() = default;
};

class LinkedPort : public Port {
 public:
  // `watch` outlives the port, or the next call; nullptr: nobody is told.
  void watch_losses(LossWatch* watch) { loss_watch_ = watch; }
  LossWatch* loss_watch() const { return loss_watch_; }

  // A spec without impairments ends them. Frames under way keep their time of arrival. Takes
  // memory; may throw std::bad_alloc.
  virtual void set_link(impairment::Direction direction, const impairment::Spec& spec) = 0;
  virtual network::LinkReport link(impairment::Direction direction) const = 0;

 protected:
  void tell_loss(const rte_mbuf* frame, DropReason reason) noexcept {
    if (loss_watch_ != nullptr) loss_watch_->on_loss(frame, reason);
  }

 private:
  LossWatch* loss_watch_ = nullptr;
};

// A frame that such a link has lost counts as dropped for this reason.
constexpr DropReason reason_of(impairment::Loss loss) {
  switch (loss) {
    case impairment::Loss::outage:
      return DropReason::impairment_outage;
    case impairment::Loss::queue_full:
      return DropReason::impairment_queue;
    case impairment::Loss::random:
    case impairment::Loss::none:
      break;
  }
  return DropReason::impairment_loss;
}

}  // namespace rocemu::dpdk_io
