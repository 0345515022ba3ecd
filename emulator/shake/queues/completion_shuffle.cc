#include "emulator/shake/queues/completion_shuffle.h"

#include <algorithm>

namespace rocemu::shake {
namespace {

constexpr uint32_t kLatePpm = 50'000;
constexpr uint64_t kVeryLateOneIn = 32;  // among those that are late at all
constexpr uint32_t kClumpPpm = 30'000;
constexpr TimeNs kLateNs = 100'000;
constexpr TimeNs kVeryLateNs = 5'000'000;
constexpr TimeNs kClumpNs = 300'000;
constexpr size_t kMaxHeld = 4096;

}  // namespace

bool CompletionShuffle::push(const transport::Completion& completion) noexcept {
  const uint64_t work_queue = work_queue_of(completion);
  const TimeNs behind = held_.newest_due(work_queue);
  const bool failed = completion.status != transport::WcStatus::success;
  const bool concerned = failed ? which_.failures : which_.successes;
  if (!concerned && behind == 0) return PassingRing::push(completion);
  // So many unread completions are more than the CQ has room for.
  if (held_.size() >= entries_) return false;
  if (held_.size() >= kMaxHeld) release(kNever);
  held_.add(completion, work_queue, concerned ? std::max(draw_due(), behind) : behind);
  return true;
}

TimeNs CompletionShuffle::draw_due() {
  if (closed_until_ > now()) return closed_until_;
  if (dice_.roll(kClumpPpm)) return closed_until_ = now() + dice_.time_up_to(kClumpNs);
  if (!dice_.roll(kLatePpm)) return now();
  return now() + dice_.time_up_to(dice_.below(kVeryLateOneIn) == 0 ? kVeryLateNs : kLateNs);
}

bool CompletionShuffle::show() noexcept {
  release(now());
  const bool wanted = PassingRing::show();
  return std::exchange(event_wanted_, false) || wanted;
}

void CompletionShuffle::release(TimeNs until) noexcept {
  if (held_.empty()) return;
  bool lost = false;
  held_.release(until, dice_, [&](const transport::Completion& completion) {
    lost |= !PassingRing::push(completion);
  });
  if (lost && owner() != nullptr) owner()->lose_completion();
  if (!held_.empty()) wake_at(held_.next_due());
}

void CompletionShuffle::on_time() noexcept {
  if (!held_.empty() && owner() != nullptr) owner()->show_soon();
}

// The event for it is sent when the CQ is looked at.
void CompletionShuffle::release_all() noexcept {
  if (held_.empty()) return;
  release(kNever);
  event_wanted_ |= PassingRing::show();
  if (owner() != nullptr) owner()->show_soon();
}

bool CompletionShuffle::prepare_to_take_over(device::CompletionRing& old) noexcept {
  static_cast<CompletionShuffle&>(old).release_all();
  return PassingRing::prepare_to_take_over(old);
}

bool CompletionShuffle::take_over(device::CompletionRing& old) noexcept {
  auto& before = static_cast<CompletionShuffle&>(old);
  before.release_all();
  if (!PassingRing::take_over(old)) return false;
  event_wanted_ |= before.event_wanted_;
  return true;
}

}  // namespace rocemu::shake
