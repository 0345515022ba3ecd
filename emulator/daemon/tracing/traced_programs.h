// Numbers for the programs that a trace names, and the records of their names.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <vector>

#include "emulator/trace/format/names.h"
#include "emulator/trace/record/device_recorder.h"

namespace rocemu::daemon {

class TracedPrograms {
 public:
  // Any thread. `pid` 0: it is not known whose it is.
  trace::Owner of(pid_t pid);
  // The records of those that have been named since this was asked last.
  std::vector<trace::Record> take_new();

 private:
  // More have no number: their requests are told without a name.
  static constexpr size_t kMax = 4096;

  std::mutex mutex_;
  std::map<pid_t, trace::Owner> owners_;
  std::vector<trace::Record> new_;
};

}  // namespace rocemu::daemon
