// ProgramShare is what one process may have of that which the NIC's process has for all programs:
// mappings, of which the kernel allows it vm.max_map_count, and descriptors (RLIMIT_NOFILE). All
// connections of a process have three quarters of the mappings and one quarter of the descriptors,
// so that nobody can leave the others without. Each queue takes a mapping, and one program may want
// 20,000 connected pairs of QPs.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <unordered_map>

namespace rocemu::daemon {

class ProgramShare : public std::enable_shared_from_this<ProgramShare> {
 public:
  struct Limits {
    unsigned mappings;
    unsigned descriptors;
    unsigned mapped_files = 4096;  // of dma::MappedFile::kMaxMappings for all
    static Limits of_this_process();
  };
  // A Charge holds some of them until it is destroyed, by any thread.
  using Charge = std::shared_ptr<void>;

  explicit ProgramShare(const Limits& limits) : limits_(limits) {}

  // Throw std::system_error (ENOMEM) when the share is used up.
  Charge mapping() { return take(mappings_, limits_.mappings, 1); }
  Charge descriptors(unsigned count) { return take(descriptors_, limits_.descriptors, count); }
  Charge mapped_file() { return take(mapped_files_, limits_.mapped_files, 1); }

 private:
  Charge take(std::atomic<unsigned>& used, unsigned limit, unsigned count);

  Limits limits_;
  std::atomic<unsigned> mappings_{0}, descriptors_{0}, mapped_files_{0};
};

// ProgramShares keeps the share of each process for as long as it has anything. The control thread
// uses it.
class ProgramShares {
 public:
  explicit ProgramShares(const ProgramShare::Limits& limits) : limits_(limits) {}
  // 0, for a process that is not visible from here, has a share of its own each time.
  std::shared_ptr<ProgramShare> of(pid_t pid);

 private:
  ProgramShare::Limits limits_;
  std::unordered_map<pid_t, std::weak_ptr<ProgramShare>> shares_;
};

}  // namespace rocemu::daemon
