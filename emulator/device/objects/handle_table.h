// Objects of one kind that belong to one context, by small numbers. 0 is never a handle.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace rocemu::device {

template <class T>
class HandleTable {
 public:
  uint32_t insert(std::unique_ptr<T> object) {
    if (free_.empty()) {
      objects_.push_back(std::move(object));
      return static_cast<uint32_t>(objects_.size());
    }
    const uint32_t handle = free_.back();
    free_.pop_back();
    objects_[handle - 1] = std::move(object);
    return handle;
  }
  // Null when there is none: handles come from programs.
  T* find(uint32_t handle) const {
    return handle - 1 < objects_.size() ? objects_[handle - 1].get() : nullptr;
  }
  void erase(uint32_t handle) {
    objects_[handle - 1].reset();
    free_.push_back(handle);
  }
  template <class F>
  void for_each(F&& visit) const {
    for (const auto& object : objects_)
      if (object) visit(*object);
  }
  uint32_t size() const { return static_cast<uint32_t>(objects_.size() - free_.size()); }

 private:
  std::vector<std::unique_ptr<T>> objects_;
  std::vector<uint32_t> free_;
};

}  // namespace rocemu::device
