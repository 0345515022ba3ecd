// Shows findings on standard error, and appends them to the file that the command reads.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "verbs_shim/checker/report/report.h"
#include "verbs_shim/checker/report/suppressions.h"

namespace rocemu::check {

class ProcessReporter : public Reporter {
 public:
  // `file` is where JSON lines go; empty for none.
  ProcessReporter(Suppressions suppressions, std::string file);

  bool was_reported(const char* name, PlaceId place) override;
  void report(const char* name, const Finding& finding, const char* verb, PlaceId place,
              pid_t thread) override;

  // The reporter of a forked child: what the parent's has shown stays shown, and the lock is
  // nobody's.
  ProcessReporter(const ProcessReporter& parent);

 private:
  void show(const char* name, const Finding& finding, const char* verb, PlaceId place,
            pid_t thread);

  static constexpr size_t kShownMax = 1000;  // then the rest is left out, and that is said once

  const Suppressions suppressions_;
  const std::string file_;
  std::mutex shown_lock_;
  std::set<std::pair<std::string, PlaceId>> shown_;
  bool said_enough_ = false;
  std::mutex output_lock_;
};

}  // namespace rocemu::check
