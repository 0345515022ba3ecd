#include "verbs_shim/checker/memory/gone_owners.h"

#include <algorithm>

#include "verbs_shim/checker/memory/watched_memory.h"

namespace rocemu::check {
namespace {

constexpr size_t kMost = 1024;
// Numbers by which programs tell requests apart are no addresses: nothing is ever mapped below.
constexpr uint64_t kFirstAddress = 65536;

// The first byte stands for the whole object: it is freed as one block.
Span memory_of(const GoneOwner& owner) { return {static_cast<uintptr_t>(owner.wr_id), 1}; }

}  // namespace

GoneOwners::~GoneOwners() {
  for (const GoneOwner& owner : owners_) unwatch_memory(memory_of(owner));
}

void GoneOwners::forget(std::vector<GoneOwner>::iterator owner) {
  unwatch_memory(memory_of(*owner));
  owners_.erase(owner);
}

void GoneOwners::add(GoneOwner owner) {
  if (owner.wr_id < kFirstAddress || owner.wr_id == UINT64_MAX) return;
  std::lock_guard lock(lock_);
  if (owners_.size() == kMost) forget(owners_.begin());
  watch_memory(memory_of(owner));
  owners_.push_back(std::move(owner));
}

void GoneOwners::note_freed(const Span& memory, const Moment& when) {
  std::lock_guard lock(lock_);
  for (GoneOwner& owner : owners_) {
    if (owner.freed.place == kNoPlace && memory.meets(memory_of(owner))) owner.freed = when;
  }
}

std::optional<GoneOwner> GoneOwners::take_freed(const CompletionQueue& cq) {
  std::lock_guard lock(lock_);
  const auto found = std::find_if(owners_.begin(), owners_.end(), [&cq](const GoneOwner& owner) {
    return owner.cq.get() == &cq && owner.freed.place != kNoPlace;
  });
  if (found == owners_.end()) return std::nullopt;
  std::optional<GoneOwner> owner = *found;
  forget(found);
  return owner;
}

void GoneOwners::forget(const CompletionQueue& cq) {
  std::lock_guard lock(lock_);
  for (size_t i = owners_.size(); i > 0; --i) {
    const auto owner = owners_.begin() + static_cast<ptrdiff_t>(i - 1);
    if (owner->cq.get() == &cq) forget(owner);
  }
}

bool GoneOwners::has(const CompletionQueue& cq) {
  std::lock_guard lock(lock_);
  return std::any_of(owners_.begin(), owners_.end(),
                     [&cq](const GoneOwner& owner) { return owner.cq.get() == &cq; });
}

}  // namespace rocemu::check
