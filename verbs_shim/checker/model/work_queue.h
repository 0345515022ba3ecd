// Requests that were posted and have not come back: the program's send queue, receive queue or SRQ
// as the checker sees it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "verbs_shim/checker/model/span.h"
#include "verbs_shim/checker/report/place.h"

namespace rocemu::check {

// Values that detectors keep with a request while it is outstanding, without an allocation.
enum Mark : unsigned {
  kSum,  // sum of the bytes at the post: one for a send, one for each part of a receive; 0 for none
  kSecondSum,
  kThirdSum,
  kNicWrites,  // number of the NIC's writes that were known at the post
  kMarks
};

struct Request {
  bool is_send = false;
  bool is_signaled = false;  // gives a completion when it succeeds
  bool is_inline = false;    // its data was copied when it was posted
  bool is_retired = false;   // completed, but not at the front of its queue yet (SRQs)
  ibv_wr_opcode opcode{};    // sends only
  unsigned flags = 0;        // sends only: IBV_SEND_...
  uint64_t wr_id = 0;
  uint64_t index = 0;  // number of requests posted to this queue before
  PlaceId posted_at = kNoPlace;
  pid_t posted_by = 0;
  uint64_t receives_before = 0;  // sends only: Model::receives_taken at the post
  // These are for RDMA and atomics.
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  // These are for UD.
  const ibv_ah* ah = nullptr;
  uint32_t remote_qpn = 0;
  uint32_t remote_qkey = 0;
  uint64_t marks[kMarks] = {};
  // Capacity of these is kept when the entry is used again.
  std::vector<ibv_sge> sges;
  std::vector<Span> spans;         // where they lie (memory/spans.h); while
  uint64_t spans_known_since = 0;  // Context::regions_changed is this

  // RDMA READ and atomics: the NIC writes to `sges`.
  bool writes_locally() const {
    return !is_send || opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
};

// In the order of posting. `lock` is held by whoever calls anything here.
class WorkQueue {
 public:
  mutable std::mutex lock;

  // A new last entry, all fields as if new.
  Request& push();
  // Takes back the last one, which was refused.
  void drop_last();
  void clear();

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // The oldest is 0.
  Request& at(size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  const Request& at(size_t i) const { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  void pop_front();

  uint64_t posted() const { return posted_; }

  // False once a completion came that fits no request: then nothing is concluded of this queue.
  bool is_tracked = true;

  // True once one has failed, in a QP that sends nothing more until it is reset: those behind it
  // have completions of their own, signaled or not (IBTA 10.8.5), so the next one is of the oldest.
  bool each_completes = false;

  // posted() when the QP last went on after an error, from SQE to RTS (IBTA 10.3.1): the
  // completions of those before are of that error, and say nothing of the QP any more.
  uint64_t went_on_at = 0;

 private:
  void grow();
  std::vector<Request> ring_;  // a power of two, or none
  size_t first_ = 0;
  size_t count_ = 0;
  uint64_t posted_ = 0;
};

}  // namespace rocemu::check
