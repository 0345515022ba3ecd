// TraceAccess is what a tracer does to a device beside listening to its transport: it asks programs
// to say when they post, and hears what they poll. Made for as long as a call of the engine thread;
// it keeps nothing.
#pragma once

#include "emulator/device/hca.h"
#include "emulator/device/interface/host_interface.h"

namespace rocemu::device {

class TraceAccess {
 public:
  explicit TraceAccess(Hca& hca) : impl_(*hca.impl_) {}

  // The queues and CQs of this QP, if there is one of that number; `watch` outlives the watch.
  void watch(wire::Qpn qpn, PollWatch& watch);
  // What watched CQs have not told yet is told now.
  void tell_polled();
  // All queues and CQs, as if they had never been watched.
  void unwatch();

 private:
  Hca::Impl& impl_;
};

}  // namespace rocemu::device
