// Ctrl-C, and what else asks a program to end, as something to look at between two events.
#pragma once

#include <csignal>

namespace rocemu::experiment {

// Takes SIGINT, SIGTERM and SIGHUP while it lives; there is one at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // The signal that came first; 0: none has.
  int signal() const;

 private:
  struct sigaction before_[3];
};

}  // namespace rocemu::experiment
