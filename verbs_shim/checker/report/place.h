// A place says where in the program something happened: a backtrace, kept once and known by a
// number. A call that comes by the same return address and frame as one before, and has the same
// callers, costs a few loads and no walk of the stack.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "verbs_shim/abi/check.h"

namespace rocemu::check {

using PlaceId = uint32_t;
inline constexpr PlaceId kNoPlace = 0;

// The id of the calling thread; costs a system call only at the thread's first time.
pid_t this_thread();

// Return addresses, the innermost first: that of the provider's function, so in the program or in
// libibverbs. Empty for kNoPlace.
std::span<const uintptr_t> frames_of(PlaceId place);

// A call of the program's into a verb, for as long as the hook runs.
class Call {
 public:
  explicit Call(rocemu_check_at at) : at_(*at) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The verb, "ibv_post_send".
  const char* verb() const { return at_.verb; }
  // Takes the backtrace when it is first asked for.
  PlaceId place() const;
  pid_t thread() const { return this_thread(); }

 private:
  const rocemu_check_call& at_;
  mutable PlaceId place_ = kNoPlace;
};

// Called in the child after fork(2), where threads that held locks are not.
void reset_places_after_fork();

}  // namespace rocemu::check
