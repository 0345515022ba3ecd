// Taps stand before what the device was given from outside, as long as somebody wants to change
// what passes: a fault injector does (fault_access.h). A device without taps has no trace of them
// on its data path.
#pragma once

#include <memory>
#include <utility>

#include "emulator/device/interface/host_interface.h"

namespace rocemu::device {

class CompletionRingTap : public CompletionRing {
 public:
  // Pushes what it has held back, and gives the ring back.
  virtual std::unique_ptr<CompletionRing> release() noexcept = 0;

  // A ring that is tapped is not resized before the tap is gone (Cq::untap).
  bool take_over(CompletionRing&) noexcept override { return false; }
};

class EventTap : public EventChannel {
 public:
  explicit EventTap(std::unique_ptr<EventChannel> inner) : inner_(std::move(inner)) {}
  EventChannel& inner() { return *inner_; }
  std::unique_ptr<EventChannel> release() { return std::move(inner_); }

  bool completion_event(uint64_t cq_user_pointer) noexcept override {
    return inner_->completion_event(cq_user_pointer);
  }

 private:
  std::unique_ptr<EventChannel> inner_;
};

class SendQueueTap : public transport::SendQueue {
 public:
  explicit SendQueueTap(transport::SendQueue& inner) : inner_(inner) {}
  void release(uint32_t count) noexcept override { inner_.release(count); }
  uint32_t waiting() const noexcept override { return inner_.waiting(); }
  uint32_t released() const noexcept override { return inner_.released(); }

 protected:
  transport::SendQueue& inner() { return inner_; }

 private:
  transport::SendQueue& inner_;
};

}  // namespace rocemu::device
