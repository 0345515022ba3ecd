// A port of a host or a switch: its queues, the cable that leads away from it, and what it counts.
// Frames that come in by it are the affair of the port at the other end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "network/switching/ecn_marker.h"
#include "network/switching/line.h"
#include "network/switching/packet_pool.h"
#include "network/switching/pause_state.h"
#include "network/switching/priority_scheduler.h"
#include "network/switching/settings.h"

namespace rocemu::network {

enum class NetworkLoss : uint8_t {
  malformed,            // shorter than an Ethernet header
  not_forwarded,        // to an address that no bridge forwards: a host's pause is one
  unknown_destination,  // nobody's MAC
  no_route,             // no path to that host is up
  no_room,              // in the switch's buffer, for a frame of its priority
  no_headroom,          // in that of a lossless priority, which its sender should have paused for
  host_queue_full,
  too_many,  // frames in the network
  link_down,
  chance,  // the link's chance of loss
};
inline constexpr size_t kNetworkLosses = 10;

struct PortCounters {
  uint64_t frames = 0;  // sent, pauses not among them
  uint64_t bytes = 0;
  uint64_t marked = 0;
  uint64_t trimmed = 0;
  uint64_t pauses_sent = 0;
  uint64_t resumes_sent = 0;
  uint64_t pauses_received = 0;
  std::array<uint64_t, kNetworkLosses> lost{};  // by NetworkLoss
  std::array<uint64_t, kPriorities> queue_max_bytes{};

  uint64_t& of(NetworkLoss loss) { return lost[static_cast<size_t>(loss)]; }
  uint64_t of(NetworkLoss loss) const { return lost[static_cast<size_t>(loss)]; }
};

struct OutputQueues {
  std::array<PacketFifo, kPriorities> fifos;
  uint8_t filled = 0;  // a bit for each that is not empty
  PriorityScheduler scheduler;
  EcnMarker marker;
};

// The cable that leads away from a port, with the frames on it.
struct Cable {
  Line line;
  TimeNs delay_ns = 0;
  uint32_t loss_ppm = 0;
  PacketFifo under_way;
  TimeNs next_arrival = kNever;
  bool busy = false;  // a frame is leaving
  bool up = true;
};

// The pauses that a port sends to the one at the other end; a bit for each priority.
struct PauseSender {
  uint8_t told = 0;     // to pause, and not yet to resume
  uint8_t pausing = 0;  // these two: as soon as the cable is free
  uint8_t resuming = 0;
  uint8_t storm = 0;     // paused for as long as Network::storm() says, whatever the buffer holds
  bool repeats = false;  // an event will repeat what it was told
};

struct Port {
  uint32_t node = 0;
  uint32_t far_node = 0;
  uint32_t number = 0;                       // among those of its node
  const SwitchSettings* settings = nullptr;  // its switch's; a host's port has the usual ones
  OutputQueues queues;
  Cable cable;
  PauseState paused;
  PauseSender pauses;
  PortCounters counters;
};

}  // namespace rocemu::network
