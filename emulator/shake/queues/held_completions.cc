#include "emulator/shake/queues/held_completions.h"

#include <algorithm>

namespace rocemu::shake {

using transport::WcOpcode;

uint64_t work_queue_of(const transport::Completion& completion) {
  constexpr uint64_t kTagMatching = ~uint64_t{0};
  if (completion.opcode >= WcOpcode::tm_add) return kTagMatching;
  const bool receive = completion.opcode >= WcOpcode::receive;
  return uint64_t{completion.qpn.value} << 1 | (receive ? 1 : 0);
}

TimeNs HeldCompletions::newest_due(uint64_t work_queue) const {
  const auto found = newest_.find(work_queue);
  return found == newest_.end() ? 0 : found->second;
}

void HeldCompletions::add(const transport::Completion& completion, uint64_t work_queue,
                          TimeNs due) {
  TimeNs& newest = newest_[work_queue];
  newest = std::max(newest, due);
  held_.push_back({completion, work_queue, newest});
}

TimeNs HeldCompletions::next_due() const {
  TimeNs next = kNever;
  for (const Held& held : held_) next = std::min(next, held.due);
  return next;
}

// Completions of a work queue that are due came before those that are not.
void HeldCompletions::sort_out(TimeNs now) {
  std::erase_if(held_, [&](const Held& held) {
    if (held.due > now) return false;
    auto queue = std::ranges::find(due_, held.work_queue, &Due::work_queue);
    if (queue == due_.end()) queue = due_.insert(due_.end(), Due{held.work_queue, {}});
    queue->completions.push_back(held.completion);
    return true;
  });
  find_newest();
}

void HeldCompletions::find_newest() {
  newest_.clear();
  for (const Held& held : held_) newest_[held.work_queue] = held.due;
}

}  // namespace rocemu::shake
