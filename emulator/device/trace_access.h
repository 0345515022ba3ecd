// TraceAccess is what a tracer does to a device beside listening to its transport: it asks programs
// to say when they post, and hears what they poll. Made for as long as a call of the engine thread;
// it keeps nothing.
#pragma once

#include "emulator/device/hca.h"
#include "emulator/device/interface/host_interface.h"

namespace rocemu::device {

// KeyFault says why a remote key does not grant what a packet asks of it.
enum class KeyFault : uint8_t {
  none,          // it does, or the QP is gone
  never_given,   // nobody has ever had that key
  gone,          // its region was deregistered
  other_domain,  // its region is in another protection domain than the QP
  out_of_range,  // the region has not all of those bytes
  not_granted,   // the region, or a window that is not bound, does not grant such an access
};

// The handles of what a QP's requests go to and come from, as its program has them; 0: none.
struct QueueHandles {
  Handle send_cq = 0;
  // 0 also of an XRC receiver, whose messages name the SRQ, which has the CQ.
  Handle receive_cq = 0;
  Handle srq = 0;
};

class TraceAccess {
 public:
  explicit TraceAccess(Hca& hca) : impl_(*hca.impl_) {}

  // Watches the queues and CQs of this QP, if there is one of that number; `watch` outlives the
  // watch.
  void watch(wire::Qpn qpn, PollWatch& watch);
  QueueHandles queues_of(wire::Qpn qpn) const;
  // What watched CQs have not told yet is told now.
  void tell_polled();
  // Returns what is wrong with a key that the QP has refused, as the tables are now.
  KeyFault explain_key(wire::Qpn qpn, uint32_t key, uint64_t address, uint32_t length_bytes) const;
  // Leaves all queues and CQs as if they had never been watched.
  void unwatch();

 private:
  Hca::Impl& impl_;
};

}  // namespace rocemu::device
