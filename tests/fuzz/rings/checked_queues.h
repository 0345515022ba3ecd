// The work queues of the rings target: those of the daemon, and checks of every request that they
// hand on. Whatever the program writes, and whenever, a request that is not refused is consistent.
#pragma once

#include <memory>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_work_queues.h"

namespace rocemu::fuzz {

class CheckedQueues final : public device::WorkQueues,
                            private transport::SendQueue,
                            private transport::ReceiveQueue {
 public:
  CheckedQueues(daemon::SharedMemory memory, const daemon::QpLayout& layout,
                uint32_t max_message_bytes);

  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  void show_state(transport::QpState state) noexcept override { queues_.show_state(state); }
  void reset() noexcept override;

 private:
  bool pop(transport::SendWork& work) noexcept override;
  void release(uint32_t count) noexcept override;
  bool pop(transport::ReceiveWork& work) noexcept override;
  void check_inline(const transport::SendWork& work) const;
  void check_segmentation(const transport::SendWork& work) const;
  void check_inline_wqe_data(const transport::SendWork& work) const;

  const std::byte* memory_;
  daemon::QpLayout layout_;
  uint32_t max_message_bytes_;
  uint64_t sends_held_ = 0;  // popped and not released
  daemon::SharedWorkQueues queues_;
};

}  // namespace rocemu::fuzz
