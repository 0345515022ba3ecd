// The requests of one send queue that reach into a peer's memory: when the NIC took each, when it
// was over, and which of them the peer's NIC is carrying out. RC carries them out in their order,
// each once, so that the first one that fits is the one (IBTA vol 1, 9.7.4.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/inspection/step.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::inspection {

struct Request {
  uint64_t number = 0;  // among those that reach into memory, from 1 on
  uint64_t wr_id = 0;
  transport::WorkOpcode opcode{};
  bool fence = false;
  Step taken = 0;
  Step over = 0;  // 0: not yet
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length_bytes = 0;
  uint64_t place = 0;  // among all requests of the queue
};

class Requests {
 public:
  // The last ones are kept, those of so many QPs of a device (`Room`).
  static constexpr size_t kKept = 128;
  struct Room {
    uint32_t queues = 1024;
  };

  Requests() = default;
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void on_taken(const transport::SendWork& work, Step now, Room& room) {
    const uint64_t place = taken_++;
    if (!reaches_into_memory(work)) return;
    if (kept_.empty()) {
      if (room.queues == 0) return;
      --room.queues;
      kept_.resize(kKept);
    }
    ++count_;
    at(count_) = {count_, work.wr_id,          work.opcode,     work.fence,        now,
                  0,      work.remote_address, work.rkey.value, work.length_bytes, place};
  }

  // The oldest `count` requests are over.
  void on_released(uint32_t count, Step now) {
    released_ += count;
    for (; over_ < count_; ++over_) {
      if (over_ + kKept < count_) continue;  // forgotten
      Request& request = at(over_ + 1);
      if (request.place >= released_) return;
      request.over = now;
    }
  }

  // The next request of this kind for just these bytes is being carried out; null: none is known.
  const Request* begin(transport::WorkOpcode kind, uint32_t key, uint64_t address,
                       uint32_t length_bytes) {
    if (kept_.empty()) return nullptr;
    uint64_t number = begun_ + 1;
    if (number + kKept <= count_) number = count_ + 1 - kKept;
    for (; number <= count_; ++number) {
      const Request& request = at(number);
      if (request.key != key || request.address != address || !same_kind(request.opcode, kind))
        continue;
      if (!transport::is_atomic(kind) && request.length_bytes != length_bytes) continue;
      begun_ = number;
      return &request;
    }
    return nullptr;
  }

  // Null when it is forgotten.
  const Request* find(uint64_t number) const {
    if (kept_.empty() || number == 0 || number > count_) return nullptr;
    const Request& request = kept_[number % kKept];
    return request.number == number ? &request : nullptr;
  }

  // The queue was emptied; what was kept stays for what is still to be found about it.
  void reset() {
    taken_ = released_ = 0;
    over_ = begun_ = count_;
  }

  void give_back(Room& room) {
    if (!kept_.empty()) ++room.queues;
    kept_.clear();
  }

 private:
  static bool reaches_into_memory(const transport::SendWork& work) {
    return work.fault == transport::WcStatus::success &&
           (transport::is_write(work.opcode) || transport::is_read_or_atomic(work.opcode));
  }
  // A request that travels as a WRITE may be one with an immediate; the kinds of atomics stand for
  // each other.
  static bool same_kind(transport::WorkOpcode a, transport::WorkOpcode b) {
    return a == b || (transport::is_write(a) && transport::is_write(b)) ||
           (transport::is_atomic(a) && transport::is_atomic(b));
  }
  Request& at(uint64_t number) { return kept_[number % kKept]; }

  std::vector<Request> kept_;  // none until there is a request to keep
  uint64_t taken_ = 0;         // counts all requests
  uint64_t released_ = 0;      // counts all requests
  uint64_t count_ = 0;         // counts requests that reach into memory
  uint64_t over_ = 0;
  uint64_t begun_ = 0;
};

}  // namespace rocemu::inspection
