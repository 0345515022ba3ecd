// The objects that detectors ask about, beyond what all have.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "verbs_shim/checker/model/object.h"
#include "verbs_shim/checker/model/work_queue.h"

namespace rocemu::check {

struct MemoryRegion : Object {
  using Object::Object;
  std::string name() const override;

  // These change with ibv_rereg_mr.
  std::atomic<uint64_t> address = 0;  // in the program
  std::atomic<uint64_t> bytes = 0;
  std::atomic<uint64_t> iova = 0;  // the region's address for SGEs and peers
  std::atomic<int> access = 0;     // IBV_ACCESS_...
  uint32_t lkey = 0;
  uint32_t rkey = 0;
};

struct AddressHandle : Object {
  using Object::Object;
  ibv_ah_attr attr = {};
};

struct Channel : Object {
  using Object::Object;  // its number is the descriptor
};

struct SharedReceiveQueue;

struct CompletionQueue : Object {
  using Object::Object;
  std::string name() const override;
  ibv_cq* cq() const { return static_cast<ibv_cq*>(handle); }

  std::shared_ptr<Channel> channel;  // null for none
  uint32_t asked_entries = 0;
  std::atomic<uint32_t> entries = 0;
  bool ignores_overrun = false;

  std::atomic<uint32_t> events_taken = 0;  // by ibv_get_cq_event
  std::atomic<uint64_t> completions_taken = 0;
  // False once requests that complete to it were lost sight of: how many there are is not known.
  std::atomic<bool> is_tracked = true;
  std::atomic<uint64_t> steps = 0;  // polls, so that detectors can say what came after what
  std::atomic<pid_t> poller = 0;    // the only thread that ever polled it
  static constexpr pid_t kSeveral = -1;
  void note_poll(pid_t thread);
  std::atomic<bool> had_completions_when_armed = false;  // the last time
  // The next poll, be it in vain, is told to who wants it (Detector::on_next_poll): an event was
  // taken, or a detector has set it.
  std::atomic<bool> tells_next_poll = false;

  // The SRQs whose completions come here by themselves, not by a QP's (XRC and tag matching).
  std::mutex srqs_lock;  // a leaf
  std::vector<std::weak_ptr<SharedReceiveQueue>> srqs;
};

struct SharedReceiveQueue : Object {
  using Object::Object;
  std::string name() const override;
  ibv_srq* srq() const { return static_cast<ibv_srq*>(handle); }

  ibv_srq_type type = IBV_SRQT_BASIC;
  std::shared_ptr<CompletionQueue> cq;  // null unless XRC or tag matching
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  WorkQueue receives;
  // The number of outstanding receives for each wr_id; under the lock of `receives`.
  std::unordered_map<uint64_t, uint32_t> outstanding_ids;
  void forget_id(uint64_t wr_id);
};

struct QueuePair : Object {
  using Object::Object;
  std::string name() const override;
  ibv_qp* qp() const { return static_cast<ibv_qp*>(handle); }

  ibv_qp_type type{};
  bool signal_all = false;
  ibv_qp_cap asked = {};
  ibv_qp_cap granted = {};
  std::shared_ptr<CompletionQueue> send_cq;
  std::shared_ptr<CompletionQueue> recv_cq;
  std::shared_ptr<SharedReceiveQueue> srq;  // null for none

  // The program last set it by ibv_modify_qp, or a completion in error showed it (then ERR).
  std::atomic<ibv_qp_state> state = IBV_QPS_RESET;
  std::mutex attr_lock;  // guards the two fields below; a leaf
  ibv_qp_attr attr = {};
  int attr_mask = 0;  // members of `attr` that were ever set

  WorkQueue sends;
  WorkQueue receives;

  // From SQE it may be moved to RTS (IBTA 10.3.1).
  bool may_send_again_after_errors() const;

  // True when the program may know without a completion that the send request is over: one of an
  // unreliable QP is as soon as it has left, and what has come since may be an answer to it.
  bool may_be_answered(const Request& request) const;

  // Nothing more is concluded of one of the two; its lock is held.
  void lose_track(WorkQueue& queue);
};

// An open device.
struct Context : Object {
  using Object::Object;
  std::string name() const override;
  ibv_context* verbs() const { return static_cast<ibv_context*>(handle); }

  // A control operation of verbs_shim/abi/control.h: 0 or an errno. Not while a hook's lock is held
  // (see Detector), and not after the context is closed.
  template <typename Request, typename Reply>
  int control(uint32_t op, Request& request, Reply& reply) {
    return control(op, &request, sizeof(request), &reply, sizeof(reply));
  }
  int control(uint32_t op, void* request, size_t request_bytes, void* reply, size_t reply_bytes);

  Model* model = nullptr;
  std::string device_name;
  ibv_device_attr limits = {};
  uint32_t max_inline_data = 0;  // which no verb tells

  // Objects that are there, by what verbs and completions know them by.
  std::shared_ptr<QueuePair> find_qp(uint32_t qpn) const;
  std::shared_ptr<MemoryRegion> find_region(uint32_t lkey) const;

  mutable std::shared_mutex tables_lock;  // a leaf
  std::unordered_map<uint32_t, std::shared_ptr<QueuePair>> qps;
  std::unordered_map<uint32_t, std::shared_ptr<MemoryRegion>> regions;  // by lkey
  // Another number after each change of `regions`, or of one of them; never 0.
  std::atomic<uint64_t> regions_changed = 1;
};

}  // namespace rocemu::check
