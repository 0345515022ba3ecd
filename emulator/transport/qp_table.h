// The QPs of an endpoint by their numbers. A QPN is a slot of the table and, above it, a
// generation, so that a late packet for a destroyed QP does not reach its successor.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

class QpTable {
 public:
  explicit QpTable(uint32_t max_qps)
      : max_qps_(max_qps),
        slot_bits_(static_cast<uint32_t>(std::bit_width(max_qps + kFirstSlot))),
        slots_(kFirstSlot),
        generations_(kFirstSlot) {}

  uint32_t size() const { return size_; }
  uint32_t slot_of(wire::Qpn qpn) const { return qpn.value & ((1u << slot_bits_) - 1); }

  // Keeps the QP that `make` makes for a free number. Empty when there is none.
  template <class Make>
  std::optional<wire::Qpn> add(Make make) {
    if (size_ >= max_qps_) return std::nullopt;
    const uint32_t slot = free_slot();
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
    free_slots_.push_back(slot);
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

  uint32_t max_qps_;
  uint32_t slot_bits_;
  std::vector<std::unique_ptr<Qp>> slots_;
  std::vector<uint8_t> generations_;
  std::deque<uint32_t> free_slots_;
  uint32_t size_ = 0;
};

}  // namespace rocemu::transport
