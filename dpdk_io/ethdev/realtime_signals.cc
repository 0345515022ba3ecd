#include "dpdk_io/ethdev/realtime_signals.h"

namespace rocemu::dpdk_io {

RealtimeSignalsTaken::RealtimeSignalsTaken() {
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) {
    struct sigaction before;
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    ::signal(number, SIG_IGN);
    ignored_.push_back(number);
  }
}

RealtimeSignalsTaken::~RealtimeSignalsTaken() {
  for (const int number : ignored_) ::signal(number, SIG_DFL);
}

}  // namespace rocemu::dpdk_io
