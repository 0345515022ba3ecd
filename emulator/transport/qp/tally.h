// The tallies count what happens, for the port and for each of its QPs, and tell the observer if
// there is one. Noting an event costs two increments and a branch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/transport/interface/counters.h"

namespace rocemu::transport {

class PortTally {
 public:
  void note(TraceEvent event, uint32_t value = 0, wire::Qpn qpn = {}, uint32_t count = 1) {
    counters[event] += count;
    if (observer != nullptr) [[unlikely]]
      observer->on_event(qpn, event, value);
  }

  Counters counters;
  Observer* observer = nullptr;
};

// There are many QPs, so that only counts that grow with the traffic have 64 bits; the others wrap
// at 2^32.
class QpTally {
 public:
  QpTally(PortTally& port, wire::Qpn qpn) : port_(port), qpn_(qpn) {}

  void note(TraceEvent event, uint32_t value = 0) { count(event, value, 1); }
  void note_packets(TraceEvent event, uint32_t psn, uint32_t packets) {
    count(event, psn, packets);
  }
  void note_bytes(TraceEvent event, uint32_t bytes) { count(event, bytes, bytes); }
  // The event `delivered`.
  void note_packet(const wire::Packet& packet, uint32_t psn) {
    count_traffic(TraceEvent::delivered, packet.packets);
    if (Observer* const observer = port_.observer) [[unlikely]] {
      observer->on_packet(qpn_, packet);
      observer->on_event(qpn_, TraceEvent::delivered, psn);
    }
  }
  // The events `sent` and `payload_sent`. Who is observed sends no runs.
  void note_sent(const SentFrame& frame, uint32_t psn, uint32_t packets) {
    count_traffic(TraceEvent::sent, packets);
    count_traffic(TraceEvent::payload_sent, frame.payload_bytes);
    if (Observer* const observer = port_.observer) [[unlikely]] {
      observer->on_frame_sent(qpn_, frame);
      observer->on_event(qpn_, TraceEvent::sent, psn);
      observer->on_event(qpn_, TraceEvent::payload_sent, frame.payload_bytes);
    }
  }
  // Null where nobody is told.
  Observer* observer() const { return port_.observer; }
  void note_refusal(Refusal refusal, uint32_t psn) {
    if (port_.observer != nullptr) [[unlikely]]
      port_.observer->on_refusal(qpn_, refusal, psn);
  }

  Counters counters() const {
    Counters all;
    for (size_t i = 0; i < kTraffic; ++i) all[TraceEvent(i)] = traffic_[i];
    for (size_t i = 0; i < kOthers; ++i) all[TraceEvent(kTraffic + i)] = others_[i];
    return all;
  }

 private:
  static constexpr size_t kTraffic = static_cast<size_t>(TraceEvent::payload_sent) + 1;
  static constexpr size_t kOthers = static_cast<size_t>(TraceEvent::state_changed) + 1 - kTraffic;

  // Precondition: `event` is one of traffic.
  void count_traffic(TraceEvent event, uint32_t count) {
    traffic_[static_cast<size_t>(event)] += count;
    port_.counters[event] += count;
  }

  void count(TraceEvent event, uint32_t value, uint32_t count) {
    const auto index = static_cast<size_t>(event);
    if (index < kTraffic) {
      traffic_[index] += count;
    } else {
      others_[index - kTraffic] += count;
    }
    port_.note(event, value, qpn_, count);
  }

  PortTally& port_;
  std::array<uint64_t, kTraffic> traffic_{};
  std::array<uint32_t, kOthers> others_{};
  wire::Qpn qpn_;
};

}  // namespace rocemu::transport
