// The work queues of a QP in memory that the program writes to (verbs_shim/abi/rings.h).
//
// A malformed work request is handed on with the status it completes with, so that the program
// finds its mistake where it looks for it. A producer index that claims more than the ring holds
// cannot come from the provider: it counts as one malformed request, which takes the QP to ERROR,
// and the queue is then empty until reset().
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/device/interface/host_interface.h"
#include "emulator/transport/interface/attributes.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {

// RingCursor keeps which entries of one ring the NIC may take. Indices run freely modulo 2^32.
class RingCursor {
 public:
  RingCursor(const uint32_t& producer, uint32_t entries)
      : producer_(&producer), entries_(entries) {}

  enum class Next { none, entry, nonsense };
  Next next() noexcept;
  uint32_t slot() const noexcept { return slot(0); }
  // The slot of the entry that comes `ahead` entries after the next one.
  uint32_t slot(uint32_t ahead) const noexcept { return (popped_ + ahead) & (entries_ - 1); }
  void advance() noexcept { ++popped_; }
  void release(uint32_t count) noexcept { released_ += count; }
  uint32_t popped() const noexcept { return popped_; }
  uint32_t released() const noexcept { return released_; }
  // The number of entries that the program has published and the NIC has not taken; the ring's size
  // at most.
  uint32_t waiting() const noexcept;
  void skip_all() noexcept;
  // A new ring begins at `index`.
  void begin_at(uint32_t index) noexcept { popped_ = released_ = seen_producer_ = index; }

 private:
  const uint32_t* producer_;
  uint32_t entries_;
  uint32_t seen_producer_ = 0;
  uint32_t popped_ = 0;
  uint32_t released_ = 0;
  bool broken_ = false;
};

class SharedSendQueue final : public transport::SendQueue {
 public:
  SharedSendQueue(std::byte* memory, const QpLayout& layout, uint32_t max_message_bytes);
  bool pop(transport::SendWork& work) noexcept override;
  void release(uint32_t count) noexcept override;
  uint32_t waiting() const noexcept override { return cursor_.waiting(); }
  uint32_t released() const noexcept override { return cursor_.released(); }
  void reset() noexcept;

 private:
  void decode(const rocemu_send_wqe& wqe, const std::byte* slot,
              transport::SendWork& work) noexcept;

  rocemu_queue_header& header_;
  const std::byte* ring_;
  RingLayout layout_;
  uint32_t max_inline_data_;
  uint32_t max_tso_header_;
  uint32_t max_message_bytes_;
  RingCursor cursor_;
  std::vector<transport::Sge> sges_;  // scratch
};

class SharedReceiveQueue final : public transport::ReceiveQueue {
 public:
  SharedReceiveQueue(std::byte* memory, const RingLayout& ring);
  bool pop(transport::ReceiveWork& work) noexcept override;
  void reset() noexcept;
  uint32_t waiting() const noexcept override { return cursor_.waiting(); }
  // Do what device::ReceiveRing says. Precondition: this queue is new.
  bool prepare_to_take_over(const SharedReceiveQueue& old) noexcept;
  bool take_over(const SharedReceiveQueue& old) noexcept;

 private:
  bool has_room_for(const SharedReceiveQueue& old) const noexcept;
  void take(const SharedReceiveQueue& old, uint32_t end) noexcept;

  rocemu_queue_header& header_;
  std::byte* ring_;
  RingLayout layout_;
  RingCursor cursor_;
  std::vector<transport::Sge> sges_;  // scratch
  // The entry at index 0 here stood at taken_from_ in the old ring; taken_ entries are here.
  std::optional<uint32_t> taken_from_;
  uint32_t taken_ = 0;
};

class SharedWorkQueues final : public device::WorkQueues {
 public:
  SharedWorkQueues(SharedMemory memory, const QpLayout& layout, uint32_t max_message_bytes);

  transport::SendQueue& send() noexcept override { return send_; }
  transport::ReceiveQueue& receive() noexcept override { return receive_; }
  void show_state(transport::QpState state) noexcept override;
  void stamp_posts(bool wanted) noexcept override;
  void reset() noexcept override;

 private:
  SharedMemory memory_;
  SharedSendQueue send_;
  SharedReceiveQueue receive_;
};

// SharedReceiveRing is a shared receive queue (SRQ) in memory of its own.
class SharedReceiveRing final : public device::ReceiveRing {
 public:
  SharedReceiveRing(SharedMemory memory, const RingLayout& ring);
  bool pop(transport::ReceiveWork& work) noexcept override { return queue_.pop(work); }
  uint32_t waiting() const noexcept override { return queue_.waiting(); }
  bool prepare_to_take_over(device::ReceiveRing& old) noexcept override {
    return queue_.prepare_to_take_over(static_cast<SharedReceiveRing&>(old).queue_);
  }
  bool take_over(device::ReceiveRing& old) noexcept override {
    return queue_.take_over(static_cast<SharedReceiveRing&>(old).queue_);
  }

 private:
  SharedMemory memory_;
  SharedReceiveQueue queue_;
};

}  // namespace rocemu::daemon
