// Deadlines of many QPs, the earliest first: a binary heap in which every slot stands at most once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::transport {

class TimerQueue {
 public:
  // Makes `slot` due at `at`, whatever it was before.
  void schedule(uint32_t slot, TimeNs at);
  void cancel(uint32_t slot);
  // Takes out a slot that is due at `now`.
  std::optional<uint32_t> pop_due(TimeNs now);

  TimeNs next_deadline() const { return heap_.empty() ? kNever : heap_.front().at; }
  // kNever when the slot is not scheduled.
  TimeNs deadline_of(uint32_t slot) const;

 private:
  struct Entry {
    TimeNs at;
    uint32_t slot;
  };
  static constexpr uint32_t kAbsent = ~0u;

  void place(uint32_t position, Entry entry);
  void sift_up(uint32_t position);
  void sift_down(uint32_t position);
  void remove_at(uint32_t position);

  std::vector<Entry> heap_;
  std::vector<uint32_t> position_;  // by slot
};

}  // namespace rocemu::transport
