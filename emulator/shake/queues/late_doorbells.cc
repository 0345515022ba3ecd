#include "emulator/shake/queues/late_doorbells.h"

#include <utility>

namespace rocemu::shake {
namespace {

constexpr uint32_t kLatePpm = 50'000;
constexpr TimeNs kLateNs = 200'000;

}  // namespace

bool LateDoorbells::pop(transport::SendWork& work) noexcept {
  if (unseen_) return false;
  if (std::exchange(empty_, false) && dice_.roll(kLatePpm)) {
    unseen_ = true;
    wake_at(now() + dice_.time_up_to(kLateNs));
    return false;
  }
  empty_ = !inner_.pop(work);
  return !empty_;
}

void LateDoorbells::on_time() noexcept {
  unseen_ = false;
  ring_();
}

}  // namespace rocemu::shake
