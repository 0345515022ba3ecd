#include "emulator/daemon/tracing/traced_programs.h"

#include <utility>

#include "base/program_name.h"

namespace rocemu::daemon {

trace::Owner TracedPrograms::of(pid_t pid) {
  if (pid == 0) return {};
  const std::lock_guard lock(mutex_);
  if (const auto known = owners_.find(pid); known != owners_.end()) return known->second;
  trace::Owner owner{.name = program_name(pid), .pid = static_cast<uint32_t>(pid)};
  if (owners_.size() < kMax) {
    owner.program = static_cast<uint16_t>(owners_.size());
    owners_[pid] = owner;
    const auto records =
        trace::name_records(trace::Table::program, owner.program, owner.name, owner.pid);
    new_.insert(new_.end(), records.begin(), records.end());
  }
  return owner;
}

std::vector<trace::Record> TracedPrograms::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

}  // namespace rocemu::daemon
