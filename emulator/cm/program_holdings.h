// ProgramHoldings says which program an owner is of, and what each program has of what all share.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "emulator/cm/types.h"

namespace rocemu::cm {

struct Holdings {
  size_t channels = 0;
  size_t ids = 0;
  size_t groups = 0;
  size_t events = 0;  // those that wait
};

class ProgramHoldings {
 public:
  // 0: not known, as that of a process that the NIC's PID namespace does not have.
  void set_program(OwnerId owner, ProgramId program) {
    if (program != 0) programs_[owner] = program;
  }
  // An owner of no known program is one by itself: ids of processes are below these.
  ProgramId program_of(OwnerId owner) const {
    const auto found = programs_.find(owner);
    return found == programs_.end() ? ProgramId{1} << 32 | owner : found->second;
  }
  Holdings& of(OwnerId owner) { return held_[program_of(owner)]; }
  // The owner has nothing any more; others of its program may.
  void forget(OwnerId owner) {
    if (of(owner).channels == 0) held_.erase(program_of(owner));
    programs_.erase(owner);
  }

 private:
  std::unordered_map<OwnerId, ProgramId> programs_;
  std::unordered_map<ProgramId, Holdings> held_;
};

}  // namespace rocemu::cm
