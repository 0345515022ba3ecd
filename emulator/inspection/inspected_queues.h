// Stands before the queues of a QP and tells the device's inspector which requests are taken off
// them, and when they are over. The record of the QP goes with its queues.
#pragma once

#include <memory>

#include "emulator/inspection/inspector.h"

namespace rocemu::inspection {

class InspectedQueues final : public device::WorkQueues,
                              private transport::SendQueue,
                              private transport::ReceiveQueue {
 public:
  InspectedQueues(std::unique_ptr<device::WorkQueues> queues, Inspector& inspector)
      : queues_(std::move(queues)), inspector_(inspector) {}
  ~InspectedQueues() override { inspector_.remove(record_); }

  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  void stamp_posts(bool wanted) noexcept override { queues_->stamp_posts(wanted); }
  void show_state(transport::QpState state) noexcept override {
    queues_->show_state(state);
    inspector_.note_state(record_, state);
  }
  void reset() noexcept override {
    queues_->reset();
    record_.begin_anew();
  }
  void belong_to(wire::Qpn qpn) noexcept override {
    queues_->belong_to(qpn);
    record_.qpn = qpn;
    inspector_.add(record_);
  }

 private:
  bool pop(transport::SendWork& work) noexcept override {
    if (!queues_->send().pop(work)) return false;
    inspector_.on_taken(record_, work);
    return true;
  }
  void release(uint32_t count) noexcept override {
    inspector_.on_released(record_, count);
    queues_->send().release(count);
  }
  bool pop(transport::ReceiveWork& work) noexcept override {
    if (!queues_->receive().pop(work)) return false;
    ++record_.receives.taken;
    return true;
  }

  std::unique_ptr<device::WorkQueues> queues_;
  Inspector& inspector_;
  QpRecord record_;
};

}  // namespace rocemu::inspection
