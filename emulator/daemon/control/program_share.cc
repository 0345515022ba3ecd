#include "emulator/daemon/control/program_share.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace rocemu::daemon {
namespace {

constexpr unsigned kUsualMappings = 65530;  // sysctl(5), where /proc does not tell

}  // namespace

ProgramShare::Limits ProgramShare::Limits::of_this_process() {
  unsigned mappings = kUsualMappings;
  std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const auto all_descriptors =
      static_cast<unsigned>(std::min<rlim_t>(descriptors.rlim_cur, UINT32_MAX));
  return {.mappings = mappings / 4 * 3, .descriptors = all_descriptors / 4};
}

ProgramShare::Charge ProgramShare::take(std::atomic<unsigned>& used, unsigned limit,
                                        unsigned count) {
  if (used.fetch_add(count) + count > limit) {
    used.fetch_sub(count);
    throw std::system_error(ENOMEM, std::generic_category());
  }
  return {&used, [self = shared_from_this(), count](std::atomic<unsigned>* held) {
            held->fetch_sub(count);
          }};
}

std::shared_ptr<ProgramShare> ProgramShares::of(pid_t pid) {
  if (pid <= 0) return std::make_shared<ProgramShare>(limits_);
  std::erase_if(shares_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ProgramShare>& known = shares_[pid];
  std::shared_ptr<ProgramShare> share = known.lock();
  if (!share) known = share = std::make_shared<ProgramShare>(limits_);
  return share;
}

}  // namespace rocemu::daemon
