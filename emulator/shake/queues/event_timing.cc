#include "emulator/shake/queues/event_timing.h"

#include <utility>

namespace rocemu::shake {
namespace {

constexpr uint32_t kLatePpm = 200'000;
constexpr uint32_t kSpuriousPpm = 100'000;
constexpr TimeNs kLateNs = 200'000;
constexpr TimeNs kSpuriousNs = 1'000'000;

}  // namespace

// When the event is sent, take_arm() looks whether the program still asks for one.
bool EventTiming::show() noexcept {
  const bool wanted = PassingRing::show();
  if (std::exchange(due_, false)) return true;
  if (!wanted || waits_) return false;
  waits_ = dice_.roll(kLatePpm);
  if (waits_) {
    wake_at(now() + dice_.time_up_to(kLateNs));
  } else if (dice_.roll(kSpuriousPpm)) {
    wake_at(now() + dice_.time_up_to(kSpuriousNs));
  }
  return !waits_;
}

void EventTiming::on_time() noexcept {
  waits_ = false;
  due_ = true;
  if (owner() != nullptr) owner()->show_soon();
}

bool EventTiming::take_over(device::CompletionRing& old) noexcept {
  if (!PassingRing::take_over(old)) return false;
  const auto& before = static_cast<const EventTiming&>(old);
  if (!before.waits_ && !before.due_) return true;
  waits_ = true;
  wake_at(now());
  return true;
}

}  // namespace rocemu::shake
