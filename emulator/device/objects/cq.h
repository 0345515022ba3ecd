// A completion queue of the device: the ring, the channel its events go to, and how many of them
// were written.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "emulator/device/interface/host_interface.h"
#include "emulator/device/interface/taps.h"

namespace rocemu::device {

struct Context;

struct Channel {
  // Null once the device is lost (FaultAccess::close_channels).
  std::unique_ptr<EventChannel> events;
  uint32_t users = 0;
};

class Cq final : public transport::CompletionQueue, public RingOwner {
 public:
  // A completion that finds the ring full is an error, or lost in silence where `ignores_overrun`.
  // `dirty` is the device's list of CQs that have something to publish.
  Cq(Context& context, Channel* channel, uint64_t user_pointer,
     std::unique_ptr<CompletionRing> ring, bool ignores_overrun, std::vector<Cq*>& dirty)
      : context_(context),
        channel_(channel),
        user_pointer_(user_pointer),
        ring_(std::move(ring)),
        ignores_overrun_(ignores_overrun),
        dirty_list_(dirty) {
    ring_->set_owner(*this);
  }

  void push(const transport::Completion& completion) noexcept override {
    if (!ring_->push(completion)) overrun_ = !ignores_overrun_;
    ++unannounced_;
    mark_dirty();
  }

  // RingOwner
  void show_soon() noexcept override { mark_dirty(); }
  void lose_completion() noexcept override {
    overrun_ = !ignores_overrun_;
    mark_dirty();
  }

  // True for the program's own memory, not for that of a device or of another program whose objects
  // it imported. Memory that is mapped here takes less to write to than to carry.
  bool reaches(const transport::MemoryRange& range) const noexcept override;

  // Shows the new completions to the program and sends the event it waits for. False when the event
  // could not be written yet.
  bool publish(TimeNs now) {
    const bool shown_before = std::exchange(wanted_, false);
    const bool wanted = ring_->show() || shown_before;
    if (moderation_.on() || held_until_ != kNever) {
      hold_back(wanted, now);
    } else if (wanted && ring_->take_arm()) {
      event_due_ = true;
    }
    return send_event(now);
  }
  // Shows the new completions now, before publish() sends the event that is wanted for them.
  void show_early() {
    if (dirty_) wanted_ |= ring_->show();
  }
  uint32_t unread() const { return ring_->unread(); }
  // The time at which publish() is to be called again although nothing new has come: an event is
  // held back, or found no room in its pipe. kNever: not at all.
  TimeNs due() const { return event_due_ ? no_room_until_ : held_until_; }
  void moderate(const CqModeration& moderation) {
    moderation_ = moderation;
    if (held_until_ != kNever) held_until_ = 0;  // an event that was held back is sent
    mark_dirty();
  }
  // False when this is to be called again before replace_ring(). Same precondition.
  bool prepare_ring(CompletionRing& ring) { return ring.prepare_to_take_over(*ring_); }
  // Replaces the ring; false when `ring` does not hold what is unread, and stays the caller's.
  // Precondition: publish() has been called since the last push.
  bool replace_ring(std::unique_ptr<CompletionRing>& ring) {
    if (!ring->take_over(*ring_)) return false;
    ring_ = std::move(ring);
    ring_->set_owner(*this);
    if (poll_watch_ != nullptr) ring_->watch_polls(poll_watch_);
    return true;
  }
  // Taps nest: untap() takes the last one away, and does nothing when there is none.
  template <class Tap>
  void tap(const Tap& tap) {
    ring_ = tap(std::move(ring_));
  }
  void untap() {
    auto* const tap = dynamic_cast<CompletionRingTap*>(ring_.get());
    if (tap == nullptr) return;
    ring_ = tap->release();
    mark_dirty();
  }
  bool tapped() const { return dynamic_cast<CompletionRingTap*>(ring_.get()) != nullptr; }
  // See CompletionRing. A ring that replaces this one is watched as well. Nothing happens when it
  // is watched already.
  void watch_polls(PollWatch& watch) {
    if (poll_watch_ == &watch) return;
    poll_watch_ = &watch;
    ring_->watch_polls(&watch);
  }
  void unwatch_polls() {
    if (poll_watch_ == nullptr) return;
    poll_watch_ = nullptr;
    ring_->watch_polls(nullptr);
  }
  void tell_polled() {
    if (poll_watch_ != nullptr) ring_->tell_polled();
  }
  // Fails as if a completion had found the ring full.
  void fail() {
    overrun_ = true;
    mark_dirty();
  }
  // A completion found the ring full and nobody has been told yet.
  bool take_overrun() {
    const bool news = overrun_ && !overrun_told_;
    overrun_told_ = overrun_told_ || news;
    return news;
  }
  bool overrun_waits() const { return overrun_ && !overrun_told_; }
  void mark_clean() { dirty_ = false; }
  void mark_dirty() {
    if (dirty_) return;
    dirty_ = true;
    dirty_list_.push_back(this);
  }
  bool dirty() const { return dirty_; }

  // 0: it is not known.
  uint32_t entries() const { return ring_->entries(); }

  Context& context() const { return context_; }
  Channel* channel() const { return channel_; }
  uint64_t user_pointer() const { return user_pointer_; }
  uint32_t completion_events_written() const { return completion_events_written_; }

  uint32_t users = 0;
  uint32_t async_events_written = 0;
  bool waits = false;  // stands in the publisher's list of CQs that are due later

 private:
  // A pipe that is full is tried again after so long, not each turn: a write costs a system call.
  static constexpr TimeNs kRoomRetryNs = 1'000'000;

  void hold_back(bool wanted, TimeNs now) {
    if (held_until_ == kNever) {
      if (wanted) {
        held_until_ = now + moderation_.period_ns;
      } else {
        unannounced_ = 0;
      }
    }
    if (held_until_ == kNever || (unannounced_ < moderation_.count && now < held_until_)) return;
    held_until_ = kNever;
    unannounced_ = 0;
    if (ring_->take_arm()) event_due_ = true;
  }

  bool send_event(TimeNs now) {
    if (channel_ == nullptr || channel_->events == nullptr) event_due_ = false;
    if (!event_due_) return true;
    if (now < no_room_until_) return false;
    if (!channel_->events->completion_event(user_pointer_)) {
      no_room_until_ = now + kRoomRetryNs;
      return false;
    }
    event_due_ = false;
    no_room_until_ = 0;
    ++completion_events_written_;
    return true;
  }

  Context& context_;
  Channel* channel_;
  uint64_t user_pointer_;
  std::unique_ptr<CompletionRing> ring_;
  bool ignores_overrun_;
  std::vector<Cq*>& dirty_list_;
  bool dirty_ = false;
  bool wanted_ = false;  // the program waits for an event about what was shown early
  bool event_due_ = false;
  bool overrun_ = false;
  bool overrun_told_ = false;
  uint32_t completion_events_written_ = 0;
  CqModeration moderation_;
  uint32_t unannounced_ = 0;  // moderated: completions since the program asked for an event
  TimeNs held_until_ = kNever;
  TimeNs no_room_until_ = 0;
  PollWatch* poll_watch_ = nullptr;
};

}  // namespace rocemu::device
