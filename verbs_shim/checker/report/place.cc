// A backtrace is taken by the unwinder of libgcc, which goes by the tables that every program has.
#include "verbs_shim/checker/report/place.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace rocemu::check {
namespace {

constexpr size_t kFramesMax = 48;
constexpr size_t kPlacesMax = 65536;
// The number of callers that are compared with a known place's, for the same return address and
// frame.
constexpr size_t kComparedCallers = 6;

struct Frame {
  uintptr_t return_address;
  const uintptr_t* slot;  // where it stands on the stack, or null where that isn't known
};

struct Walk {
  uintptr_t from;  // frames before this one are ours
  bool started = false;
  size_t count = 0;
  std::array<Frame, kFramesMax> frames;
};

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  walk.started = walk.started || address == walk.from;
  if (!walk.started) return _URC_NO_REASON;
  // On x86-64 the canonical frame address of a callee is just above the return address.
  const auto* slot = reinterpret_cast<const uintptr_t*>(_Unwind_GetCFA(context)) - 1;
  const bool is_there = walk.count > 0 && *slot == address;
  walk.frames[walk.count++] = {address, is_there ? slot : nullptr};
  return walk.count == kFramesMax ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// All places that were ever met, for the whole process and its forked children.
class Places {
 public:
  PlaceId id_of(std::span<const Frame> frames) {
    std::vector<uintptr_t> addresses;
    addresses.reserve(frames.size());
    for (const Frame& frame : frames) addresses.push_back(frame.return_address);
    uint64_t hash = 0;
    for (const uintptr_t address : addresses) hash = (hash ^ address) * 0x9e3779b97f4a7c15;
    std::lock_guard lock(mutex_);
    const auto [from, to] = by_hash_.equal_range(hash);
    for (auto it = from; it != to; ++it) {
      if (places_[it->second - 1] == addresses) return it->second;
    }
    if (places_.size() == kPlacesMax) return kNoPlace;
    // Reserved at once, so that what frames_of() hands out stays where it is.
    if (places_.empty()) places_.reserve(kPlacesMax);
    places_.push_back(std::move(addresses));
    const auto id = static_cast<PlaceId>(places_.size());
    by_hash_.emplace(hash, id);
    return id;
  }

  std::span<const uintptr_t> frames(PlaceId id) {
    std::lock_guard lock(mutex_);
    if (id == kNoPlace || id > places_.size()) return {};
    return places_[id - 1];
  }

  // A thread that is not in the child may have held it.
  void forget_lock() { new (&mutex_) std::mutex; }

 private:
  std::mutex mutex_;
  std::vector<std::vector<uintptr_t>> places_;
  std::unordered_multimap<uint64_t, PlaceId> by_hash_;
};

Places& places() {
  static Places* const instance = new Places;  // never destroyed: verbs are called until the end
  return *instance;
}

struct KnownCall {
  const void* return_address = nullptr;
  const void* frame = nullptr;
  PlaceId place = kNoPlace;
  uint32_t callers = 0;
  std::array<Frame, kComparedCallers> compared;
};
constexpr size_t kKnownCalls = 32;  // calls that each thread remembers
thread_local std::array<KnownCall, kKnownCalls> known_calls;
thread_local pid_t known_thread = 0;

KnownCall& known_call(const rocemu_check_call& at) {
  const auto mix = reinterpret_cast<uintptr_t>(at.return_address) * 31 +
                   reinterpret_cast<uintptr_t>(at.frame) / 16;
  return known_calls[mix % kKnownCalls];
}

bool is_same(const KnownCall& known, const rocemu_check_call& at) {
  if (known.return_address != at.return_address || known.frame != at.frame) return false;
  for (uint32_t i = 0; i < known.callers; ++i) {
    if (*known.compared[i].slot != known.compared[i].return_address) return false;
  }
  return known.callers > 0;
}

PlaceId walk_stack(const rocemu_check_call& at, KnownCall& known) {
  Walk walk;
  walk.from = reinterpret_cast<uintptr_t>(at.return_address);
  _Unwind_Backtrace(note_frame, &walk);
  known = {at.return_address, at.frame, kNoPlace, 0, {}};
  for (size_t i = 1; i < walk.count && known.callers < kComparedCallers; ++i) {
    if (walk.frames[i].slot == nullptr) break;
    known.compared[known.callers++] = walk.frames[i];
  }
  if (walk.count == 0) walk.frames[walk.count++] = {walk.from, nullptr};
  known.place = places().id_of({walk.frames.data(), walk.count});
  return known.place;
}

}  // namespace

pid_t this_thread() {
  if (known_thread == 0) known_thread = static_cast<pid_t>(syscall(SYS_gettid));
  return known_thread;
}

std::span<const uintptr_t> frames_of(PlaceId place) { return places().frames(place); }

PlaceId Call::place() const {
  if (place_ != kNoPlace) return place_;
  KnownCall& known = known_call(at_);
  place_ = is_same(known, at_) ? known.place : walk_stack(at_, known);
  return place_;
}

void reset_places_after_fork() {
  places().forget_lock();
  known_thread = 0;
}

}  // namespace rocemu::check
