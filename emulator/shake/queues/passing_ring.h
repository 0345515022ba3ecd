// A CompletionRing that hands everything on to another: decorators change what they are about.
// Rings that take over from each other have the same decorators.
#pragma once

#include <memory>
#include <utility>

#include "emulator/device/interface/host_interface.h"

namespace rocemu::shake {

class PassingRing : public device::CompletionRing {
 public:
  explicit PassingRing(std::unique_ptr<device::CompletionRing> inner) : inner_(std::move(inner)) {}

  void set_owner(device::RingOwner& owner) noexcept override {
    owner_ = &owner;
    inner_->set_owner(owner);
  }
  uint32_t entries() const noexcept override { return inner_->entries(); }
  bool push(const transport::Completion& completion) noexcept override {
    return inner_->push(completion);
  }
  bool show() noexcept override { return inner_->show(); }
  bool take_arm() noexcept override { return inner_->take_arm(); }
  uint32_t unread() const noexcept override { return inner_->unread(); }
  bool take_over(device::CompletionRing& old) noexcept override {
    return inner_->take_over(*static_cast<PassingRing&>(old).inner_);
  }
  bool prepare_to_take_over(device::CompletionRing& old) noexcept override {
    return inner_->prepare_to_take_over(*static_cast<PassingRing&>(old).inner_);
  }

 protected:
  device::CompletionRing& inner() { return *inner_; }
  // Null until the ring is a CQ's.
  device::RingOwner* owner() const { return owner_; }

 private:
  std::unique_ptr<device::CompletionRing> inner_;
  device::RingOwner* owner_ = nullptr;
};

}  // namespace rocemu::shake
