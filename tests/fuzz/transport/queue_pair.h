// One QP of the transport target: its queues, and what a program may expect of them. Each posted
// request completes at most once, in order, and only an unsignalled success without a word.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "emulator/sim/sim_queues.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::fuzz {

inline constexpr size_t kSendDepth = 16;
inline constexpr size_t kReceiveDepth = 16;

class ReceiveQueue final : public transport::ReceiveQueue {
 public:
  bool post(transport::ReceiveWork work);
  bool pop(transport::ReceiveWork& work) noexcept override;
  uint64_t posted() const { return posted_; }
  uint64_t popped() const { return popped_; }
  void clear();

 private:
  std::deque<transport::ReceiveWork> works_;
  uint64_t posted_ = 0;
  uint64_t popped_ = 0;
};

// Receives that several QPs take: completed once each, in whatever order.
class SharedReceives {
 public:
  bool post(transport::ReceiveWork work) {
    outstanding_.insert(queue.posted());
    const uint32_t length_bytes = work.length_bytes;
    if (!queue.post(std::move(work))) {
      outstanding_.erase(queue.posted());
      return false;
    }
    lengths_.push_back(length_bytes);
    return true;
  }
  void on_completion(const transport::Completion& completion);

  ReceiveQueue queue;

 private:
  std::set<uint64_t> outstanding_;
  std::vector<uint32_t> lengths_;  // by wr_id
};

// wr_ids are serial numbers: the request with number n is the n-th that was posted, from 0.
class QueuePair {
 public:
  QueuePair() : send_queue(kSendDepth) {}

  bool post_send(sim::SendRequest request);
  bool post_receive(transport::ReceiveWork work);

  // Checks a completion against what was posted.
  void on_completion(const transport::Completion& completion);
  // To RESET: what was posted is forgotten.
  void on_reset();
  // From SQE to RTS: sends that are posted from now on may succeed again.
  void on_resumed() { resumed_at_ = send_queue.posted(); }
  // In ERROR, after the queues were flushed: nothing is left.
  void check_flushed() const;
  // Nothing that was posted to the send queue still waits for an answer.
  bool sends_done() const;

  wire::Qpn qpn{};
  transport::Service service = transport::Service::rc;
  bool uses_srq = false;
  transport::QpState state = transport::QpState::reset;  // as last modified
  transport::QpAttributes attributes{};
  // The largest limits since the last reset: a smaller one does not take back what was begun.
  uint32_t max_rd_atomic = 0;
  uint32_t max_dest_rd_atomic = 0;
  bool unrung = false;    // something was posted without a doorbell
  wire::Psn request_psn;  // our guess of what its responder expects next
  wire::Psn sent_psn;     // of the last request that it sent

  sim::SimSendQueue send_queue;
  ReceiveQueue receive_queue;

 private:
  struct Send {
    uint64_t wr_id;
    bool signaled;
  };
  struct Receive {
    uint64_t wr_id;
    uint32_t length_bytes;
  };
  void on_send_completion(const transport::Completion& completion);
  void forgive_behind_error();  // before the oldest send is looked at
  void on_receive_completion(const transport::Completion& completion);

  std::deque<Send> sends_;            // posted and not known to be complete
  std::deque<Receive> receives_;      // posted and not complete
  bool send_failed_ = false;          // one completed with an error
  uint64_t resumed_at_ = UINT64_MAX;  // the wr_id of the first one that may succeed again
  bool receive_failed_ = false;
};

}  // namespace rocemu::fuzz
