// The QPs of an endpoint by their numbers. A QPN is a slot of the table and, above it, a
// generation, so that a late packet for a destroyed QP does not reach its successor.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.h"
#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

class QpTable {
 public:
  explicit QpTable(uint32_t max_qps)
      : max_qps_(max_qps),
        slot_bits_(static_cast<uint32_t>(std::bit_width(max_qps + kFirstSlot))),
        slots_(kFirstSlot),
        generations_(kFirstSlot) {}

  // From now on numbers are drawn at random.
  void draw_numbers(uint64_t seed) { random_.emplace(seed); }

  uint32_t size() const { return size_; }
  uint32_t slot_of(wire::Qpn qpn) const { return qpn.value & ((1u << slot_bits_) - 1); }

  // Keeps the QP that `make` makes for a free number. Empty when there is none.
  template <class Make>
  std::optional<wire::Qpn> add(Make make) {
    if (size_ >= max_qps_) return std::nullopt;
    const uint32_t slot = random_ ? random_slot() : free_slot();
    const wire::Qpn qpn{(uint32_t{generations_[slot]} << slot_bits_ | slot) & wire::Psn::kMask};
    slots_[slot] = make(qpn);
    ++size_;
    return qpn;
  }
  // Precondition: find() finds it.
  void remove(wire::Qpn qpn) {
    const uint32_t slot = slot_of(qpn);
    slots_[slot].reset();
    ++generations_[slot];
    if (!random_) free_slots_.push_back(slot);
    --size_;
  }

  Qp* find(wire::Qpn qpn) const {
    const uint32_t slot = slot_of(qpn);
    if (slot >= slots_.size()) return nullptr;
    Qp* qp = slots_[slot].get();
    return qp != nullptr && qp->qpn() == qpn ? qp : nullptr;
  }
  // Calls `visit` for each QP, until it returns false.
  template <class Visit>
  void visit_while(Visit visit) const {
    for (const std::unique_ptr<Qp>& qp : slots_)
      if (qp != nullptr && !visit(*qp)) return;
  }
  // Precondition: a QP has the slot.
  Qp& at_slot(uint32_t slot) const { return *slots_[slot]; }

 private:
  static constexpr uint32_t kFirstSlot = 17;  // 0 and 1 are management QPs; Linux starts here, too

  // Fresh numbers first: the longer a number rests, the better.
  uint32_t free_slot() {
    if (slots_.size() < size_t{max_qps_} + kFirstSlot) {
      slots_.emplace_back();
      generations_.push_back(0);
      return static_cast<uint32_t>(slots_.size() - 1);
    }
    const uint32_t slot = free_slots_.front();
    free_slots_.pop_front();
    return slot;
  }

  // At most half of the slots there are, as long as there may be more, are taken.
  uint32_t random_slot() {
    constexpr size_t kMinSlots = 4096;
    const size_t most = size_t{max_qps_} + kFirstSlot;
    if (2 * (size_t{size_} + kFirstSlot) >= slots_.size())
      slots_.resize(std::min(most, std::max(kMinSlots, 2 * slots_.size())));
    while (generations_.size() < slots_.size())
      generations_.push_back(static_cast<uint8_t>(random_->next()));
    for (;;) {
      const auto slot = static_cast<uint32_t>(random_->between(kFirstSlot, slots_.size() - 1));
      if (slots_[slot] == nullptr) return slot;
    }
  }

  uint32_t max_qps_;
  uint32_t slot_bits_;
  std::vector<std::unique_ptr<Qp>> slots_;
  std::vector<uint8_t> generations_;
  std::deque<uint32_t> free_slots_;
  std::optional<Random> random_;
  uint32_t size_ = 0;
};

}  // namespace rocemu::transport
