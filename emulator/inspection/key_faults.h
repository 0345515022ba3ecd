// Reasons why a key, or an address with it, was refused.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_set>

#include "emulator/device/memory/memory_regions.h"
#include "emulator/inspection/findings.h"

namespace rocemu::inspection {

// Keys whose regions have gone, the last ones.
class GoneKeys {
 public:
  static constexpr size_t kMax = 8192;

  void add(uint32_t key) {
    if (!keys_.insert(key).second) return;
    order_.push_back(key);
    if (order_.size() <= kMax) return;
    keys_.erase(order_.front());
    order_.pop_front();
  }
  bool contains(uint32_t key) const { return keys_.contains(key); }

 private:
  std::unordered_set<uint32_t> keys_;
  std::deque<uint32_t> order_;
};

// An access to memory that its key did not grant.
struct RefusedAccess {
  wire::Qpn qpn{};  // at the memory's side
  transport::PdHandle pd = 0;
  uint32_t key = 0;
  uint64_t address = 0;
  uint32_t length_bytes = 0;
};

// The tables of keys at both ends; the requester's is null when it is not this NIC's.
struct KeyTables {
  const device::MemoryRegions& owner;
  const GoneKeys& gone;
  const device::MemoryRegions* requester = nullptr;
  transport::PdHandle requester_pd = 0;
};

// Empty when it is none of these mistakes: a right is missing, the range is too long, or the key is
// a window's.
std::optional<FindingKind> explain(const RefusedAccess& access, const KeyTables& tables);

}  // namespace rocemu::inspection
