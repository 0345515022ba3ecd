// The NIC's findings, for each program, until its checker asks for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "emulator/device/interface/specs.h"
#include "emulator/inspection/meeting.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::inspection {

enum class FindingKind : uint32_t {
  race,             // this request and another one, by RDMA
  processor_race,   // an atomic, and a word that something else changed while it was under way
  key_gone,         // the key's region was deregistered
  memory_unmapped,  // the region is registered, but its memory is gone
  key_swapped,      // the key is valid with its bytes or halves swapped
  address_swapped,  // the address is
  own_key,          // the key is valid, but of the requester's own memory
  other_domain,     // the key is of a region in another protection domain
  key_never_given,  // nobody was ever given that key
};

// The part that a program has in a finding.
enum class Role : uint32_t {
  requester,  // it posted the request
  owner,      // the memory is its own
};

struct Finding {
  FindingKind kind{};
  Role role{};
  QpPlace qp{};     // this program's QP
  QpPlace other{};  // the peer, or, in a race, the other requester
  // The request and, in a race, the other one; `known` when it is known which.
  bool known = false;
  uint64_t wr_id = 0;
  uint64_t other_wr_id = 0;
  transport::WorkOpcode opcode{};
  transport::WorkOpcode other_opcode{};
  bool other_is_mine = false;  // both requests are this program's
  uint32_t key = 0;
  uint64_t address = 0;  // as requests name it
  uint64_t length_bytes = 0;
  // For processor_race: the value that the last atomic left, and the one that the next found.
  uint64_t left = 0;
  uint64_t found = 0;
};

class Findings {
 public:
  static constexpr size_t kMax = 1024;     // for all programs of a device
  static constexpr size_t kMaxOfOne = 32;  // for each program

  // Not when the program has as many, or one of the same kind about the same QPs. The oldest of all
  // makes room.
  void add(device::ContextId program, const Finding& finding) {
    size_t of_program = 0;
    for (const Kept& kept : kept_) {
      if (kept.program != program) continue;
      ++of_program;
      const Finding& other = kept.finding;
      if (other.kind == finding.kind && other.role == finding.role && other.qp == finding.qp &&
          other.other == finding.other && other.opcode == finding.opcode)
        return;
    }
    if (of_program >= kMaxOfOne) return;
    if (kept_.size() >= kMax) kept_.pop_front();
    kept_.push_back({program, finding});
  }

  // The oldest ones of the program, at most so many; they are handed over.
  std::vector<Finding> take(device::ContextId program, size_t most) {
    std::vector<Finding> taken;
    std::erase_if(kept_, [&](const Kept& kept) {
      if (kept.program != program || taken.size() >= most) return false;
      taken.push_back(kept.finding);
      return true;
    });
    return taken;
  }

  size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    device::ContextId program;
    Finding finding;
  };
  std::deque<Kept> kept_;
};

}  // namespace rocemu::inspection
