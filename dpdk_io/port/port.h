// A port is where frames enter and leave: one end of a link, whatever is at the other end. It is
// used by one thread, the engine's, and works in bursts so that a virtual call is paid per burst.
// Time comes in as a parameter, in nanoseconds of any monotonic clock, and never goes back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

struct rte_mbuf;

namespace rocemu::dpdk_io {

class FramePool;

enum class DropReason : uint8_t {
  unknown_destination,  // transmitted to a unicast MAC that no port has
  queue_full,           // on its way to this port, whose receive queue was full
  // Transmitted: shorter than an Ethernet header, or in several segments; received: no UDP
  // datagram, or longer than a frame.
  // A run (run_mark.h) that came when nobody was to see one any more counts here as well.
  malformed,
  // These three: on a link with impairments of this port, in either direction.
  impairment_loss,
  impairment_queue,  // no room in the link's queue, or too many frames under way
  impairment_outage,
  refused_by_kernel,  // transmitted: no route, longer than the MTU, a firewall; the link is down
  network,            // transmitted: on the way through the switches of a network
};
inline constexpr size_t kDropReasonCount = 8;

struct PortStats {
  uint64_t rx_frames = 0;  // handed out by receive()
  uint64_t rx_bytes = 0;
  uint64_t tx_frames = 0;  // sent into the link, which may lose them; not what was refused
  uint64_t tx_bytes = 0;
  std::array<uint64_t, kDropReasonCount> drops{};

  uint64_t& dropped(DropReason reason) noexcept { return drops[static_cast<size_t>(reason)]; }
  uint64_t dropped(DropReason reason) const noexcept { return drops[static_cast<size_t>(reason)]; }
};

class Port {
 public:
  virtual ~Port() = default;

  // Fills `burst` from the front with frames that have arrived and returns how many. They are the
  // caller's to free. They may be in other hands at the same time (a flooded frame, a capture), so
  // neither their bytes nor their mbuf may be changed.
  virtual unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept = 0;

  // Takes the first n frames of `burst` and returns n; the rest stays the caller's. Frames that
  // were taken may no longer be written to. A frame dropped inside counts as taken and is in the
  // stats.
  virtual unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept = 0;

  // A descriptor that polls readable when frames arrive, for a sleeping engine; -1 when there is
  // none.
  virtual int poll_fd() const noexcept = 0;

  // True while receive() would hand out a frame of the past: an engine must not go to sleep then.
  virtual bool has_work() const noexcept = 0;

  // The time by which receive() has to be called, so that an engine must not sleep longer: a frame
  // that is under way arrives then, perhaps at another port, or the port has to look for itself, or
  // has something of its own to do. kNever: not before poll_fd() says so.
  virtual uint64_t next_arrival_ns() const noexcept = 0;

  // True while transmit() takes frames that owe their ICRC (owed_icrc.h).
  virtual bool takes_owed_icrc() const noexcept { return false; }

  // Where the buffers of runs (run_mark.h) come from, while transmit() takes them; else nullptr.
  virtual FramePool* run_pool() const noexcept { return nullptr; }
  // True while those may lend their payload (lent_payload.h).
  virtual bool takes_lent() const noexcept { return false; }
  // Landings of this epoch hold (lent_payload.h); 0: there are none.
  virtual uint64_t landing_epoch() const noexcept { return 0; }
  // Says that receive() is to hand out no runs: whoever stands behind it looks at frames. It is
  // told as often that this is over.
  virtual void want_single_frames(bool /*wanted*/) noexcept {}

  // Says whether the device wants frames that are none of RoCE, too, on a port whose network has
  // others to take them. A port that hands out whatever comes does so all the same.
  virtual void want_other_frames(bool /*wanted*/) noexcept {}

  // A storm of pauses on this port's link from now on: of those that this port sends, which what
  // comes to it waits for (`received`), of those that it gets (`sent`), of both, or of none any
  // more. False when nobody at the link's other end obeys pauses: nothing has happened then.
  virtual bool storm(uint64_t /*now_ns*/, bool /*received*/, bool /*sent*/) noexcept {
    return false;
  }

  virtual const PortStats& stats() const noexcept = 0;
};

}  // namespace rocemu::dpdk_io
