// The checker of this process: model, reporter and detectors, and the hooks that bring them what
// the program does.
#pragma once

#include <errno.h>

#include <atomic>
#include <memory>
#include <vector>

#include "verbs_shim/checker/detectors/detector.h"
#include "verbs_shim/checker/model/model.h"
#include "verbs_shim/checker/report/process_reporter.h"

namespace rocemu::check {

struct Checker {
  Checker(const rocemu_check_services& services, Suppressions suppressions, std::string file);
  // The checker of a forked child, where the parent's objects are not the child's to use.
  explicit Checker(Checker& parent);

  // Adds the detectors that ROCEMU_CHECK names.
  void add_detectors();
  void add(std::unique_ptr<Detector> detector);

  Model model;
  ProcessReporter reporter;
  // The parent's, in a forked child. Its locks may be held for ever.
  Model* inherited = nullptr;

  std::vector<std::unique_ptr<Detector>> detectors;
  // For each event of the data path, the detectors that want it.
  std::vector<Detector*> sends, receives, polls, next_polls, arms, meaningless_reads;
};

// Null before rocemu_check_start_v1().
Checker* current_checker();

// Every hook begins with one of these: it knows the call, and restores the program's errno at the
// end.
class Hook {
 public:
  explicit Hook(rocemu_check_at at) : call(at), checker(*current_checker()), errno_(errno) {
    ++depth;
  }
  ~Hook() {
    --depth;
    errno = errno_;
  }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  // The object behind a shadow; null for none, and for one of the process that this one was forked
  // from, of which the detectors are told.
  template <typename T>
  T* object(void* shadow) {
    if (shadow == nullptr) return nullptr;
    T* found = static_cast<T*>(static_cast<Object*>(shadow));
    if (found->context->model == &checker.model) [[likely]]
      return found;
    tell_used_in_child(found->kind);
    return nullptr;
  }

  // Finds an object that has no shadow.
  std::shared_ptr<Object> find(rocemu_check_kind kind, const void* handle);

  // Is this thread in a hook? Then what it frees is the checker's own.
  static bool is_inside() { return depth > 0; }

  Call call;
  Checker& checker;

 private:
  static inline thread_local int depth = 0;

  void tell_used_in_child(rocemu_check_kind kind);

  const int errno_;
};

// The object behind a shadow, as Hook::object() finds it, but without telling anybody; null for an
// object of another process.
template <typename T>
T* own_object(void* shadow) {
  if (shadow == nullptr) return nullptr;
  T* found = static_cast<T*>(static_cast<Object*>(shadow));
  return found->context->model == &current_checker()->model ? found : nullptr;
}

// Nothing more is concluded of a queue of the QP, or of the SRQ. The queue's lock is held.
void lose_track(Hook& hook, QueuePair& qp, WorkQueue& queue);
void lose_track(Hook& hook, SharedReceiveQueue& srq);
// The requests of a queue are over, without completions that the program could take.
void retire_all(Hook& hook, QueuePair& qp);
void retire_all(Hook& hook, SharedReceiveQueue& srq);

// The hooks, by file.
void fill_object_hooks(rocemu_check_hooks& hooks);
void fill_posting_hooks(rocemu_check_hooks& hooks);
void fill_completion_hooks(rocemu_check_hooks& hooks);
void fill_event_hooks(rocemu_check_hooks& hooks);
// Has the preload library tell of connection management.
void hear_of_cm();

}  // namespace rocemu::check
