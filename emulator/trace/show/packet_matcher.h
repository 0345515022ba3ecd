// Finds the packet that a record speaks of. Part of story.cc.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/trace/show/story.h"

namespace rocemu::trace {

class PacketMatcher {
 public:
  explicit PacketMatcher(Story& story) : story_(story) {}

  // Each returns the packet, a new one where there was none: its connection is then kNowhere.
  At on_sent(At at);
  At on_lost(At at);
  At on_arrived(At at);

 private:
  // Packets with the same destination QPN, PSN and opcode.
  struct Alike {
    std::vector<At> under_way;  // sent, and not seen since; the oldest first
    At settled = kNowhere;      // the last one that was seen
    At early = kNowhere;        // seen before it was sent, by clocks that are read now and then
  };
  // Of those that are alike, which are sent again and again, the oldest are forgotten.
  static constexpr size_t kMaxUnderWay = 64;
  // The record of a packet's sending may be so much later than that of its arrival.
  static constexpr uint64_t kClockSlackNs = 1'000'000;

  static uint64_t key_of(uint32_t destination_qpn, const Record& record) {
    return uint64_t{destination_qpn} << 32 | uint64_t{record.psn} << 8 | record.opcode;
  }
  bool may_be_seen_by(At packet, const Record& arrival) const;
  At add();

  Story& story_;
  std::unordered_map<uint64_t, Alike> alike_;
};

}  // namespace rocemu::trace
