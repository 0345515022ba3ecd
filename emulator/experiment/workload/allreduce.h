// Allreduce as libraries of collectives do it. The data that a host sends next waits for its parts,
// which have come when the NIC has told its program so; adding takes no time.
#pragma once

#include <algorithm>

#include "emulator/experiment/workload/rounds.h"

namespace rocemu::experiment {

// Hosts in a ring, and the data in as many pieces. In 2 (n - 1) steps each host sends a piece to
// the next one: n - 1 in which pieces are added up, n - 1 in which sums go round.
class RingAllreduce final : public Rounds {
 public:
  using Rounds::Rounds;

  void on_received(TimeNs, uint64_t tag, FlowStarter& starter) override {
    const uint64_t step = tag / size() + 1;
    if (step < steps()) send(starter, step, (tag % size() + 1) % size());
  }

 private:
  uint64_t size() const { return settings().hosts.size(); }
  uint64_t steps() const { return 2 * (size() - 1); }
  void send(FlowStarter& starter, uint64_t step, uint64_t host) {
    starter.start({.from = settings().hosts[host],
                   .to = settings().hosts[(host + 1) % size()],
                   .bytes = std::max<uint64_t>(1, settings().bytes / size()),
                   .verb = Verb::write_imm,
                   .lasting = true,
                   .tag = step * size() + host});
  }
  uint64_t begin_round(FlowStarter& starter) override {
    for (uint64_t host = 0; host < size(); ++host) send(starter, 0, host);
    return steps() * size();
  }
};

// A binary tree of hosts: sums go up to the first one, and the result comes down. The data is cut
// into chunks, which follow each other.
class TreeAllreduce final : public Rounds {
 public:
  using Rounds::Rounds;

  void on_received(TimeNs, uint64_t tag, FlowStarter& starter) override {
    const Part part = part_of(tag);
    if (part.down) return send_down(starter, part.chunk, part.to);
    uint64_t& summed = summed_[part.chunk * size() + part.to];
    if (++summed < children_of(part.to)) return;
    summed = 0;
    if (part.to == 0) {
      send_down(starter, part.chunk, 0);
    } else {
      send(starter, {part.chunk, part.to, (part.to - 1) / 2, false});
    }
  }

 private:
  struct Part {
    uint64_t chunk;
    uint64_t from;
    uint64_t to;
    bool down;
  };

  uint64_t size() const { return settings().hosts.size(); }
  uint64_t children_of(uint64_t host) const {
    return (2 * host + 1 < size()) + uint64_t{2 * host + 2 < size()};
  }
  // A host has one parent: the child and the direction say who sends to whom.
  uint64_t tag_of(const Part& part) const {
    const uint64_t child = part.down ? part.to : part.from;
    return (part.chunk * size() + child) * 2 + part.down;
  }
  Part part_of(uint64_t tag) const {
    const bool down = tag % 2 != 0;
    const uint64_t child = tag / 2 % size();
    const uint64_t parent = (child - 1) / 2;
    return {tag / 2 / size(), down ? parent : child, down ? child : parent, down};
  }
  void send(FlowStarter& starter, const Part& part) {
    starter.start({.from = settings().hosts[part.from],
                   .to = settings().hosts[part.to],
                   .bytes = std::max<uint64_t>(1, settings().bytes / settings().chunks),
                   .verb = Verb::write_imm,
                   .lasting = true,
                   .tag = tag_of(part)});
  }
  void send_down(FlowStarter& starter, uint64_t chunk, uint64_t host) {
    for (uint64_t child = 2 * host + 1; child <= 2 * host + 2 && child < size(); ++child)
      send(starter, {chunk, host, child, true});
  }
  uint64_t begin_round(FlowStarter& starter) override {
    summed_.resize(settings().chunks * size());
    for (uint64_t chunk = 0; chunk < settings().chunks; ++chunk)
      for (uint64_t host = 1; host < size(); ++host)
        if (children_of(host) == 0) send(starter, {chunk, host, (host - 1) / 2, false});
    return 2 * (size() - 1) * settings().chunks;
  }

  // Children whose part has come, by chunk and host. Parts of a later round come behind those of
  // the one before, over the same connection.
  std::vector<uint64_t> summed_;
};

}  // namespace rocemu::experiment
