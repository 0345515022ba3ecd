// Says what the memory that a peer writes, reads and counts in may hold: the requests of one
// direction applied in order. A request is executed at most once and in order, but nobody sees
// exactly when, so that a byte may also have what a request behind the point of observation has
// written already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/sim/plan.h"

namespace rocemu::sim_scenarios {

std::vector<std::byte> payload_of(const Op& op);

class ArenaModel {
 public:
  explicit ArenaModel(const Direction& direction);

  const std::vector<std::byte>& initial() const { return initial_; }
  // Returns what READ or atomic `op` gets when nothing behind it has been executed.
  const std::vector<std::byte>& result(size_t op) const { return results_[op]; }

  // True when `bytes`, seen at `offset`, can be what is there when all requests before `executed`
  // have been executed for certain, and those before `possible` perhaps.
  bool allows(size_t executed, size_t possible, uint32_t offset, std::span<const std::byte> bytes);

 private:
  bool changes_arena(size_t op) const;
  void apply(size_t op, std::vector<std::byte>& image) const;
  // When all requests before `executed` have been executed.
  const std::vector<std::byte>& image_before(size_t executed);

  const Direction& direction_;
  std::vector<std::byte> initial_;
  std::vector<std::byte> image_;  // when all before executed_ have been
  size_t executed_ = 0;
  std::vector<std::vector<std::byte>> results_;   // by request; empty: none
  std::vector<std::vector<std::byte>> payloads_;  // WRITEs: the payload; atomics: the word after it
};

}  // namespace rocemu::sim_scenarios
