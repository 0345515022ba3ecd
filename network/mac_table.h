// The port of each MAC: a hash table that answers for a run of frames to one destination without a
// search. It takes any number of entries; its user bounds those that are learned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rocemu::network {

template <class Port>
class MacTable {
 public:
  // nullptr when no port has it.
  Port* find(uint64_t mac) noexcept {
    if (mac != last_mac_) [[unlikely]] {
      last_mac_ = mac;
      last_port_ = slot_of(mac).port;
    }
    return last_port_;
  }

  // From now on `mac` is at `port`, wherever it was before.
  void set(uint64_t mac, Port& port) {
    Slot* slot = &slot_of(mac);
    if (slot->port == nullptr) {
      if (2 * ++size_ > slots_.size()) {
        grow();
        slot = &slot_of(mac);
      }
    } else if (slot->port == &port) {
      return;
    }
    *slot = {mac, &port};
    last_mac_ = kNoMac;
  }

  bool contains(uint64_t mac) noexcept { return slot_of(mac).port != nullptr; }
  size_t size() const { return size_; }

 private:
  struct Slot {
    uint64_t mac = 0;
    Port* port = nullptr;  // none: the slot is free
  };
  static constexpr uint64_t kNoMac = ~uint64_t{0};

  // The slot of `mac`, or the free one that it would get. At least half of them are free.
  Slot& slot_of(uint64_t mac) noexcept {
    size_t at = (mac * 0x9e37'79b9'7f4a'7c15) >> shift_;  // Fibonacci hashing
    while (slots_[at].port != nullptr && slots_[at].mac != mac) at = (at + 1) & mask_;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    --shift_;
    for (const Slot& slot : old)
      if (slot.port != nullptr) slot_of(slot.mac) = slot;
  }

  std::vector<Slot> slots_{8};  // 2^(64 - shift_) of them
  size_t mask_ = 7;
  unsigned shift_ = 61;
  size_t size_ = 0;
  uint64_t last_mac_ = kNoMac;  // MAC of the last find()
  Port* last_port_ = nullptr;
};

}  // namespace rocemu::network
