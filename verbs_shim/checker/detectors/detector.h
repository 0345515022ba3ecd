// A detector: finds one kind of mistake. It is told what the program does, looks at the model, and
// reports. It sits in a file of its own and has one line in table.cc.
//
// Events come from the program's threads, several at once; what a detector remembers stands in
// notes of objects or marks of requests, or behind a lock of its own. It never waits, never calls
// into the program, and asks the NIC (Context::control) only in events that say "nothing is
// locked".
//
// No false findings: a detector reports what is wrong on some NIC that keeps to the specification,
// whatever the other threads do, and stays silent when it can't know.
#pragma once

#include <span>

#include "verbs_shim/checker/model/model.h"
#include "verbs_shim/checker/report/finding.h"

namespace rocemu::check {

// A verb that makes or changes something and was refused.
struct Refusal {
  rocemu_check_kind kind;
  Context* context;
  int error;
  const void* asked;  // the verb's structure, as rocemu_check_hooks::refused has it, or null
  uint64_t value;
};

class Detector {
 public:
  // The events of the data path that a detector wants; events that none wants cost nothing.
  enum Wants : unsigned {
    kNothing = 0,
    kSends = 1,              // on_send_...
    kReceives = 2,           // on_receive_...
    kPolls = 4,              // on_polled
    kNextPolls = 8,          // on_next_poll
    kArms = 16,              // on_armed
    kMeaninglessReads = 32,  // on_meaningless_read; the program gets garbage then
  };

  // `name` is static, as people write it: "send-buffer-changed".
  Detector(const char* name, unsigned wants) : name_(name), wants_(wants) {}
  virtual ~Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  const char* name() const { return name_; }
  unsigned wants() const { return wants_; }

  // --- Objects: nothing is locked. ---
  virtual void on_made(const Call&, Object&) {}
  virtual void on_refused(const Call&, const Refusal&) {}
  virtual void on_region_changed(const Call&, MemoryRegion&) {}
  // Called before the verb that destroys the object is carried out: the object is still there.
  virtual void on_going(const Call&, Object&) {}
  // Called after the object was destroyed; outstanding requests have been taken from the queues by
  // then.
  virtual void on_gone(const Call&, Object&) {}
  // Destroying failed, with an errno.
  virtual void on_not_gone(const Call&, Object&, int /*error*/) {}
  // ibv_modify_qp. Before: the QP is in the state that `qp.state` says.
  virtual void on_modifying(const Call&, QueuePair&, const ibv_qp_attr&, int /*mask*/) {}
  // Called after the verb: `error` is 0 or an errno; `before` is the state that the QP was in.
  virtual void on_modified(const Call&, QueuePair&, const ibv_qp_attr&, int /*mask*/,
                           ibv_qp_state /*before*/, int /*error*/) {}

  // --- Posting: the queue's lock is held. ---
  // Called for each request, before the NIC can see it.
  virtual void on_send_posting(const Call&, QueuePair&, Request&) {}
  // `srq` is null for a receive queue of the QP's own; else `qp` is.
  virtual void on_receive_posting(const Call&, QueuePair* /*qp*/, SharedReceiveQueue* /*srq*/,
                                  Request&) {}
  // A request that was not taken, before it leaves the queue again.
  virtual void on_not_posted(const WorkQueue&, const Request&) {}
  // Nothing more is concluded of this queue (WorkQueue::is_tracked).
  virtual void on_track_lost(const WorkQueue&) {}
  // Called after the list: `error` is 0, or an errno and then `bad` the first request that was not
  // taken. Requests that were not taken are out of the queue again.
  virtual void on_sends_posted(const Call&, QueuePair&, const ibv_send_wr* /*list*/, int /*error*/,
                               const ibv_send_wr* /*bad*/) {}
  virtual void on_receives_posted(const Call&, QueuePair*, SharedReceiveQueue*,
                                  const ibv_recv_wr* /*list*/, int /*error*/,
                                  const ibv_recv_wr* /*bad*/) {}

  // --- Completions: the CQ and the request's queue are locked. ---
  // A request is over. `completion` is its own, or null when that of a later request, or the reset
  // or end of the QP, says so. `is_sure` is false when several requests have this wr_id, and it may
  // have been another one of them.
  virtual void on_send_done(const Call&, QueuePair&, Request&, const ibv_wc* /*completion*/) {}
  virtual void on_receive_done(const Call&, QueuePair*, SharedReceiveQueue*, Request&,
                               const ibv_wc* /*completion*/, bool /*is_sure*/) {}

  // --- CQs. ---
  // Called after the above, for one completion or more, with the CQ locked.
  virtual void on_polled(const Call&, CompletionQueue&, std::span<ibv_wc>) {}
  // Called for one poll after CompletionQueue::tells_next_poll was set, and before the completions
  // are looked at, of which there are `count`. The CQ is locked unless there are none.
  virtual void on_next_poll(const Call&, CompletionQueue&, int /*count*/) {}
  // Called after a poll that gave failed completions; nothing is locked.
  virtual void on_failures_polled(const Call&, CompletionQueue&) {}
  virtual void on_meaningless_read(const Call&, CompletionQueue&, const char* /*field*/,
                                   const ibv_wc&) {}
  virtual void on_armed(const Call&, CompletionQueue&, bool /*solicited_only*/) {}

  // --- Events: nothing is locked. ---
  virtual void on_waiting(const Call&, Channel&) {}
  virtual void on_cq_event_taken(const Call&, CompletionQueue&) {}
  virtual void on_async_event_taken(const Call&, Context&, const ibv_async_event&) {}

  // --- Connection management (abi/cm_watch.h): nothing is locked. ---
  // A thread waits for an event of a channel of librdmacm's, and does no longer.
  virtual void on_cm_waiting(const Call&, int /*channel_fd*/) {}
  virtual void on_cm_waited(int /*channel_fd*/) {}
  virtual void on_cm_channel_going(const Call&, int /*channel_fd*/) {}
  virtual void on_listening(const Call&, uint32_t /*refused*/) {}

  // --- Memory: nothing is locked. ---
  virtual void on_memory_going(const Call&, const void* /*address*/, size_t /*bytes*/,
                               const char* /*how*/) {}
  // A verb in a forked child, on an object of the parent's.
  virtual void on_used_in_child(const Call&, rocemu_check_kind) {}

  // --- The end. ---
  // Called in the thread that calls exit(3), or returns from main.
  virtual void on_exiting(int /*status*/) {}
  // Called by exit(3), after all destructors of the program's.
  virtual void on_end(const Model&) {}

  // Set by the table.
  void attach(unsigned index, Model& model, Reporter& reporter) {
    index_ = index;
    model_ = &model;
    reporter_ = &reporter;
  }

 protected:
  // Is this place still to be reported? Ask first, and build the finding only then.
  bool is_new(const Call& call) { return !reporter_->was_reported(name_, call.place()); }
  void report(const Call& call, const Finding& finding) {
    reporter_->report(name_, finding, call.verb(), call.place(), call.thread());
  }
  // For what was found at the program's end, or is not about a call: `place` is shown first.
  bool is_new(PlaceId place) { return !reporter_->was_reported(name_, place); }
  void report(PlaceId place, const char* verb, pid_t thread, const Finding& finding) {
    reporter_->report(name_, finding, verb, place, thread);
  }

  Model& model() const { return *model_; }

  // The note of this detector at an object, made when it is first asked for. The reference is good
  // as long as the object is. Code that changes a note holds a lock of the note's own, or is in an
  // event with the right lock held.
  //
  // noted() is null where the object has no note yet.
  template <typename T>
  T* noted(Object& object) {
    return static_cast<T*>(object.notes[index_].load(std::memory_order_acquire));
  }
  template <typename T>
  T& note(Object& object) {
    if (T* const there = noted<T>(object)) [[likely]]
      return *there;
    auto made = std::make_unique<T>();
    Note* there = nullptr;
    // Another thread may have made it meanwhile.
    if (!object.notes[index_].compare_exchange_strong(there, made.get()))
      return static_cast<T&>(*there);
    return *made.release();
  }

 private:
  const char* const name_;
  const unsigned wants_;
  unsigned index_ = 0;
  Model* model_ = nullptr;
  Reporter* reporter_ = nullptr;
};

}  // namespace rocemu::check
