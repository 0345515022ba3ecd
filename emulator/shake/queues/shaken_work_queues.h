// The work queues of a QP of a shaken device: decorators of its send and receive queue, and the
// moments at which no completion of the QP may be held back any more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "emulator/device/interface/host_interface.h"
#include "emulator/shake/queues/completion_holders.h"
#include "emulator/shake/queues/first_rnr.h"
#include "emulator/shake/queues/late_doorbells.h"

namespace rocemu::shake {

class ShakenWorkQueues final : public device::WorkQueues {
 public:
  // Dice of the behaviours that it is to have, and Endpoint::on_doorbell().
  struct Parts {
    std::optional<Dice> doorbells;
    std::optional<Dice> rnr;
    std::function<void(wire::Qpn)> ring;
  };

  ShakenWorkQueues(std::unique_ptr<device::WorkQueues> inner, CompletionHolders& holders,
                   Agenda& agenda, const Parts& parts)
      : inner_(std::move(inner)), holders_(holders) {
    if (parts.doorbells)
      send_.emplace(inner_->send(), agenda, *parts.doorbells,
                    [this, ring = parts.ring] { ring(qpn_); });
    if (parts.rnr) receive_.emplace(inner_->receive(), *parts.rnr);
  }
  ~ShakenWorkQueues() override {
    if (qpn_ != wire::Qpn{}) holders_.release_all();
  }

  transport::SendQueue& send() noexcept override {
    return send_ ? static_cast<transport::SendQueue&>(*send_) : inner_->send();
  }
  transport::ReceiveQueue& receive() noexcept override {
    return receive_ ? static_cast<transport::ReceiveQueue&>(*receive_) : inner_->receive();
  }
  void stamp_posts(bool wanted) noexcept override { inner_->stamp_posts(wanted); }
  void show_state(transport::QpState state) noexcept override {
    if (receive_) receive_->on_state(state);
    inner_->show_state(state);
  }
  void reset() noexcept override {
    holders_.release_all();
    inner_->reset();
  }
  void belong_to(wire::Qpn qpn) noexcept override {
    qpn_ = qpn;
    inner_->belong_to(qpn);
  }

 private:
  std::unique_ptr<device::WorkQueues> inner_;
  CompletionHolders& holders_;
  std::optional<LateDoorbells> send_;
  std::optional<FirstRnr> receive_;
  wire::Qpn qpn_{};
};

// A context's async events: they come after the completions that they may tell of.
class EventsAfterCompletions final : public device::EventChannel {
 public:
  EventsAfterCompletions(std::unique_ptr<device::EventChannel> inner, CompletionHolders& holders)
      : inner_(std::move(inner)), holders_(holders) {}

  bool completion_event(uint64_t cq_user_pointer) noexcept override {
    return inner_->completion_event(cq_user_pointer);
  }
  bool async_event(uint64_t element, uint32_t event_type) noexcept override {
    holders_.release_all();
    return inner_->async_event(element, event_type);
  }

 private:
  std::unique_ptr<device::EventChannel> inner_;
  CompletionHolders& holders_;
};

}  // namespace rocemu::shake
