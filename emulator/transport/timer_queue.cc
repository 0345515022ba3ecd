#include "emulator/transport/timer_queue.h"

namespace rocemu::transport {

void TimerQueue::place(uint32_t position, Entry entry) {
  heap_[position] = entry;
  position_[entry.slot] = position;
}

void TimerQueue::sift_up(uint32_t position) {
  const Entry entry = heap_[position];
  while (position > 0) {
    const uint32_t parent = (position - 1) / 2;
    if (heap_[parent].at <= entry.at) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void TimerQueue::sift_down(uint32_t position) {
  const Entry entry = heap_[position];
  for (;;) {
    uint32_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (entry.at <= heap_[child].at) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, entry);
}

void TimerQueue::schedule(uint32_t slot, TimeNs at) {
  if (slot >= position_.size()) position_.resize(slot + 1, kAbsent);
  uint32_t position = position_[slot];
  if (position == kAbsent) {
    position = static_cast<uint32_t>(heap_.size());
    heap_.push_back({at, slot});
    position_[slot] = position;
    sift_up(position);
    return;
  }
  const TimeNs before = heap_[position].at;
  heap_[position].at = at;
  if (at < before) {
    sift_up(position);
  } else {
    sift_down(position);
  }
}

void TimerQueue::remove_at(uint32_t position) {
  position_[heap_[position].slot] = kAbsent;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  place(position, last);
  sift_up(position);
  sift_down(position_[last.slot]);
}

void TimerQueue::cancel(uint32_t slot) {
  if (slot < position_.size() && position_[slot] != kAbsent) remove_at(position_[slot]);
}

std::optional<uint32_t> TimerQueue::pop_due(TimeNs now) {
  if (heap_.empty() || heap_.front().at > now) return std::nullopt;
  const uint32_t slot = heap_.front().slot;
  remove_at(0);
  return slot;
}

TimeNs TimerQueue::deadline_of(uint32_t slot) const {
  if (slot >= position_.size() || position_[slot] == kAbsent) return kNever;
  return heap_[position_[slot]].at;
}

}  // namespace rocemu::transport
