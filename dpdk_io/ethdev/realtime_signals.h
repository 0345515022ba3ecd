// Keeps real-time signals from drivers. net_tap would have the kernel send one for each frame that
// arrives, to whatever thread takes signals; the engine polls and sleeps on descriptors instead,
// which the driver does when it finds no signal free.
#pragma once

#include <signal.h>

#include <vector>

namespace rocemu::dpdk_io {

// For as long as it lives, real-time signals that nobody handles are ignored and so look taken. No
// other thread may change what signals do meanwhile.
class RealtimeSignalsTaken {
 public:
  RealtimeSignalsTaken();
  ~RealtimeSignalsTaken();
  RealtimeSignalsTaken(const RealtimeSignalsTaken&) = delete;
  RealtimeSignalsTaken& operator=(const RealtimeSignalsTaken&) = delete;

 private:
  std::vector<int> ignored_;
};

}  // namespace rocemu::dpdk_io
