// All objects of a process. Thread-safe; its lock is a leaf.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "verbs_shim/checker/model/objects.h"

namespace rocemu::check {

class Model {
 public:
  explicit Model(const rocemu_check_services& of_provider) : services(of_provider) {}

  void add(std::shared_ptr<Object> object);
  // Takes out an object that was destroyed, and remembers it for a while.
  void remove(const std::shared_ptr<Object>& object, PlaceId gone_at);

  // The object with the program's pointer, among those that are there; null for none.
  std::shared_ptr<Object> find(rocemu_check_kind kind, const void* handle) const;
  // True when there is such an object. Does not wait for the lock, which may be held for ever in a
  // model that a child inherited: false then.
  bool try_has(rocemu_check_kind kind, const void* handle) const;
  std::shared_ptr<Context> find_context(const ibv_context* context) const;
  // The last object with that pointer among those that were destroyed lately.
  std::shared_ptr<Object> find_gone(rocemu_check_kind kind, const void* handle) const;

  // All that are there, in the order in which they were made. They may be destroyed meanwhile.
  std::vector<std::shared_ptr<Object>> all() const;

  const rocemu_check_services& services;

  // Completions of receives that the program has taken, of all QPs.
  std::atomic<uint64_t> receives_taken = 0;

 private:
  struct Key {
    rocemu_check_kind kind;
    const void* handle;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.handle) * 31 + static_cast<size_t>(key.kind);
    }
  };
  struct Entry {
    std::shared_ptr<Object> object;
    uint64_t sequence;
  };

  mutable std::shared_mutex lock_;
  std::unordered_map<Key, Entry, Hash> objects_;
  std::vector<std::shared_ptr<Context>> contexts_;  // all that ever were: objects point to theirs
  std::vector<std::shared_ptr<Object>> gone_;       // a ring of the last ones
  size_t next_gone_ = 0;
  uint64_t made_ = 0;
};

}  // namespace rocemu::check
