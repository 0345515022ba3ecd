// Senders and their receivers in one round: incast, permutation, all-to-all.
#pragma once

#include <numeric>
#include <utility>

#include "emulator/experiment/workload/rounds.h"

namespace rocemu::experiment {

class Pattern : public Rounds {
 public:
  using Rounds::Rounds;

 protected:
  uint64_t begin_pair(FlowStarter& starter, uint32_t from, uint32_t to) const {
    for (uint32_t i = 0; i < settings().flows; ++i)
      starter.start({.from = from, .to = to, .bytes = settings().bytes, .verb = settings().verb});
    return settings().flows;
  }
};

class Incast final : public Pattern {
 public:
  using Pattern::Pattern;

 private:
  uint64_t begin_round(FlowStarter& starter) override {
    uint64_t flows = 0;
    for (const uint32_t from : settings().hosts) flows += begin_pair(starter, from, settings().to);
    return flows;
  }
};

// Each sends to another one, and nobody to itself: hosts in one random cycle (Sattolo's shuffle).
class Permutation final : public Pattern {
 public:
  Permutation(const WorkloadSettings& settings, uint64_t seed) : Pattern(settings), random_(seed) {}

 private:
  uint64_t begin_round(FlowStarter& starter) override {
    const std::vector<uint32_t>& hosts = settings().hosts;
    std::vector<uint32_t> to(hosts.size());
    std::iota(to.begin(), to.end(), 0);
    for (size_t i = to.size(); i-- > 1;) std::swap(to[i], to[random_.below(i)]);
    uint64_t flows = 0;
    for (size_t i = 0; i < to.size(); ++i) flows += begin_pair(starter, hosts[i], hosts[to[i]]);
    return flows;
  }

  Random random_;
};

// Host i begins with host i + 1, so that not all begin with the same one.
class AllToAll final : public Pattern {
 public:
  using Pattern::Pattern;

 private:
  uint64_t begin_round(FlowStarter& starter) override {
    const std::vector<uint32_t>& hosts = settings().hosts;
    uint64_t flows = 0;
    for (size_t away = 1; away < hosts.size(); ++away)
      for (size_t i = 0; i < hosts.size(); ++i)
        flows += begin_pair(starter, hosts[i], hosts[(i + away) % hosts.size()]);
    return flows;
  }
};

}  // namespace rocemu::experiment
