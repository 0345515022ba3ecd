// Lets a target act between any two accesses that the NIC makes to shared memory, as a program on
// another core can: the NIC's mappings are protected, each access faults, the target is called,
// the one instruction runs, and the mapping is protected again. Deterministic, unlike a thread.
//
// x86-64 Linux only; elsewhere available() is false and nothing is called.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace rocemu::fuzz {

// One at a time in a process.
class AccessTrap {
 public:
  // Is told in which of the mappings, in the order of watch(), and where in it the access begins.
  // Runs in a signal handler, at a place where the code under test accesses shared memory and
  // nothing else.
  using OnAccess = std::function<void(size_t mapping, size_t offset_bytes)>;

  static bool available();

  explicit AccessTrap(OnAccess on_access);
  ~AccessTrap();
  AccessTrap(const AccessTrap&) = delete;
  AccessTrap& operator=(const AccessTrap&) = delete;

  // Whole pages, which outlive the trap or are unwatched.
  size_t watch(std::span<std::byte> mapping);
  void unwatch(size_t mapping);

  // From arm() to disarm(), at most `max_accesses` are trapped, and the rest run free.
  void arm(size_t max_accesses);
  void disarm();

 private:
  static void on_fault(int, void* info, void* context);
  static void on_step(int, void* info, void* context);
  void protect(int protection);

  OnAccess on_access_;
  std::vector<std::span<std::byte>> mappings_;
  size_t left_ = 0;
  size_t stepping_ = 0;
};

}  // namespace rocemu::fuzz
