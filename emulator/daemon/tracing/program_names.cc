#include "emulator/daemon/tracing/program_names.h"

#include <fstream>
#include <string>
#include <utility>

namespace rocemu::daemon {

trace::Owner ProgramNames::of(pid_t pid) {
  if (pid == 0) return {};
  const std::lock_guard lock(mutex_);
  if (const auto known = owners_.find(pid); known != owners_.end()) return known->second;
  trace::Owner owner{.pid = static_cast<uint32_t>(pid)};
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::getline(file, owner.name);
  if (owners_.size() < kMost) {
    owner.program = static_cast<uint16_t>(owners_.size());
    owners_[pid] = owner;
    const auto records =
        trace::name_records(trace::Table::program, owner.program, owner.name, owner.pid);
    new_.insert(new_.end(), records.begin(), records.end());
  }
  return owner;
}

std::vector<trace::Record> ProgramNames::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

}  // namespace rocemu::daemon
