// IdTable: all ids by their handles. The handle of an id that is gone comes back as late as it can,
// so that a program that still uses it seldom meets another's id.
#pragma once

#include <cstddef>
#include <deque>
#include <map>

#include "emulator/cm/rdma_id.h"

namespace rocemu::cm {

class IdTable {
 public:
  explicit IdTable(size_t max_ids) : max_ids_(max_ids) {}

  bool full() const { return ids_.size() >= max_ids_; }
  const std::map<IdHandle, RdmaId>& all() const { return ids_; }
  // nullptr: there is none.
  const RdmaId* find(IdHandle handle) const {
    const auto found = ids_.find(handle);
    return found == ids_.end() ? nullptr : &found->second;
  }
  // Precondition: there is one.
  RdmaId& at(IdHandle handle) { return ids_.at(handle); }

  // An id stays where it is until it is removed. Precondition: not full.
  RdmaId& add() {
    const IdHandle handle = take_handle();
    RdmaId& id = ids_[handle];
    id.handle = handle;
    return id;
  }
  void remove(IdHandle handle) {
    ids_.erase(handle);
    free_handles_.push_back(handle);
  }

 private:
  IdHandle take_handle() {
    if (fresh_handle_ < max_ids_) return fresh_handle_++;
    const IdHandle handle = free_handles_.front();
    free_handles_.pop_front();
    return handle;
  }

  size_t max_ids_;
  std::map<IdHandle, RdmaId> ids_;
  std::deque<IdHandle> free_handles_;
  IdHandle fresh_handle_ = 0;
};

}  // namespace rocemu::cm
