// The settings of the switches and hosts of a network. Values alone; the text form is in
// network/description.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"

namespace rocemu::network {

// IEEE 802.1Q-2018, 6.9.4: a PCP has three bits; and 802.1Qbb pauses so many by themselves.
inline constexpr unsigned kPriorities = 8;

inline constexpr uint32_t kOneInPpm = 1'000'000;

enum class PriorityBy : uint8_t { dscp, pcp };

// RED as DCQCN uses it, by the bytes of one queue that a departing frame leaves behind: never up to
// kmin, always above kmax, in between with a probability that grows from 0 to pmax.
struct EcnSettings {
  uint64_t kmin_bytes = 0;
  uint64_t kmax_bytes = 0;
  uint32_t pmax_ppm = kOneInPpm;
  // Not 0: both thresholds are for this rate, and those of a port grow with its own.
  uint64_t at_rate_bits_per_s = 0;
  bool on = true;
};

// Priority-based flow control (IEEE 802.1Qbb), by what a port has brought in of one priority and is
// still in the switch.
struct PfcSettings {
  uint8_t lossless = 0;     // a bit for each priority
  uint64_t xoff_bytes = 0;  // pause from here on; 0: alpha times the free buffer instead
  uint32_t alpha_ppm = 125'000;
  uint64_t xon_bytes = 0;            // with xoff_bytes: resume when no more than this is left
  uint64_t resume_offset_bytes = 0;  // else: resume when this much below the threshold
  uint64_t headroom_bytes = 0;       // for each port and priority; 0: what its cable needs
  uint16_t quanta = 0xffff;          // a pause's length, of 512 bits each
};

// Trimming: a frame that finds no room in the buffer is cut to its first bytes and goes on in
// another queue.
struct TrimSettings {
  uint32_t keep_bytes = 0;  // length of a cut frame
  uint8_t priority = 7;
  uint8_t dscp = 0;  // DSCP of cut frames
  bool on = true;
};

// Strict priorities first, the highest foremost; the others share by their weights, in bytes.
struct SchedulingSettings {
  uint8_t strict = 0;  // a bit for each priority
  std::array<uint32_t, kPriorities> weights{1, 1, 1, 1, 1, 1, 1, 1};
  uint32_t quantum_bytes = 1600;  // share of weight 1 in one round
};

enum class PathBy : uint8_t { flow, flowlet, packet };

struct PathSettings {
  PathBy by = PathBy::flow;
  TimeNs flowlet_gap_ns = 50'000;  // after such a silence a flow may take another path
};

struct SwitchSettings {
  uint64_t buffer_bytes = 16'000'000;  // memory of each switch, headroom included
  uint32_t alpha_ppm = kOneInPpm;      // a lossy queue may have alpha times the free memory
  uint64_t queue_limit_bytes = 0;      // not 0: a lossy queue may have this much instead
  std::optional<EcnSettings> ecn;
  PfcSettings pfc;
  std::optional<TrimSettings> trim;
  SchedulingSettings scheduling;
  PathSettings paths;
  bool telemetry = true;  // they fill in path telemetry where a packet has it
};

// A link is down from `down_ns` until `up_ns`, and again every `every_ns` unless that is 0.
// Frames that are on it or in a queue for it then are lost.
struct LinkFailure {
  uint32_t link = 0;
  TimeNs down_ns = 0;
  TimeNs up_ns = 0;
  TimeNs every_ns = 0;
};

struct NetworkSettings {
  uint64_t seed = 1;
  PriorityBy priority_by = PriorityBy::dscp;
  // The priority of each DSCP: its upper three bits, unless told otherwise.
  std::array<uint8_t, 64> priority_of_dscp = [] {
    std::array<uint8_t, 64> upper_bits{};
    for (unsigned i = 0; i < 64; ++i) upper_bits[i] = static_cast<uint8_t>(i / 8);
    return upper_bits;
  }();
  uint32_t overhead_bytes = 0;    // on the cable beyond the frame: 24 of Ethernet, with its FCS
  uint64_t host_queue_bytes = 0;  // room for each priority; more is lost. 0: no limit
  TimeNs reroute_ns = 0;          // until paths avoid a link that is down, or use it again
  SwitchSettings switches;
  std::map<uint32_t, SwitchSettings> other_switches;  // by node: those with settings of their own
  std::vector<LinkFailure> failures;

  const SwitchSettings& of_node(uint32_t node) const {
    const auto own = other_switches.find(node);
    return own == other_switches.end() ? switches : own->second;
  }
};

}  // namespace rocemu::network
