#include "emulator/daemon/rings/doorbells.h"

#include <utility>

namespace rocemu::daemon {

Doorbells::Doorbells(SharedMemory memory, uint32_t slots)
    : memory_(std::move(memory)),
      page_(*reinterpret_cast<rocemu_doorbell_page*>(memory_.data())),
      slots_(slots) {}

std::optional<uint32_t> Doorbells::allocate(wire::Qpn qpn) {
  if (!free_.empty()) {
    const uint32_t slot = free_.top();
    free_.pop();
    qpns_[slot] = qpn.value;
    return slot;
  }
  if (qpns_.size() == slots_) return std::nullopt;
  qpns_.push_back(qpn.value);
  return static_cast<uint32_t>(qpns_.size() - 1);
}

void Doorbells::release(uint32_t slot) {
  qpns_[slot] = kNobody;
  free_.push(slot);
}

bool Doorbells::any_rung() const noexcept {
  for (uint32_t group = 0; group < used_groups(); ++group)
    if (__atomic_load_n(&page_.groups[group].summary, __ATOMIC_SEQ_CST) != 0) return true;
  return false;
}

}  // namespace rocemu::daemon
