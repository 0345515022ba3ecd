#include "emulator/experiment/command/stop_request.h"

#include <cstddef>
#include <iterator>

namespace rocemu::experiment {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t first_signal = 0;

void note(int signal) {
  if (first_signal == 0) first_signal = signal;
}

}  // namespace

StopRequest::StopRequest() {
  first_signal = 0;
  // There is no SA_RESTART, so that a wait for a child hears of the signal.
  struct sigaction action = {};
  action.sa_handler = note;
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

StopRequest::~StopRequest() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

int StopRequest::signal() const { return first_signal; }

}  // namespace rocemu::experiment
