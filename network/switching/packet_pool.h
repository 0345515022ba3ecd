// Frames inside a network, each with what was read of its headers when it came in, in queues that
// are linked through them: a hop takes no memory. The pool grows to the most that there ever were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"
#include "network/topology/topology.h"

namespace rocemu::network {

// Destinations of a packet that are no host.
inline constexpr uint32_t kEverybody = kNone - 1;
inline constexpr uint32_t kControl = kNone - 2;  // a pause, for whom the next node is: no frame

struct PacketState {
  uint64_t flow_hash = 0;
  TimeNs arrives = 0;        // while on a cable
  uint32_t destination = 0;  // host, kEverybody or kControl
  uint32_t length_bytes = 0;
  uint32_t ingress = kNone;  // port that it came by, of the node it is at
  uint8_t priority = 0;
  uint8_t ip_offset = 0;
  uint8_t udp_offset = 0;
  uint8_t pause = 0;          // in a pause: priorities to pause
  uint8_t resume = 0;         // in a pause: priorities to resume
  uint8_t surplus_bytes = 0;  // behind the UDP datagram; 0: there is no path telemetry
  bool ecn_capable = false;
  bool trimmed = false;
  uint16_t surplus_offset = 0;
};

template <class Frame>
struct Packet : PacketState {
  Frame frame{};
  uint32_t next = kNone;  // in its queue
};

struct PacketFifo {
  uint32_t head = kNone;
  uint32_t tail = kNone;
  uint64_t bytes = 0;

  bool empty() const noexcept { return head == kNone; }
};

template <class Frame>
class PacketPool {
 public:
  Packet<Frame>& operator[](uint32_t id) noexcept { return packets_[id]; }
  void reserve(size_t packets) { packets_.reserve(packets); }
  size_t in_use() const noexcept { return in_use_; }

  uint32_t take(const PacketState& state, Frame frame) {
    uint32_t id = free_;
    if (id == kNone) {
      id = static_cast<uint32_t>(packets_.size());
      packets_.emplace_back();
    } else {
      free_ = packets_[id].next;
    }
    ++in_use_;
    static_cast<PacketState&>(packets_[id]) = state;
    packets_[id].frame = std::move(frame);
    return id;
  }
  // The frame is the caller's then.
  Frame give_back(uint32_t id) noexcept {
    --in_use_;
    packets_[id].next = free_;
    free_ = id;
    return std::exchange(packets_[id].frame, Frame{});
  }

  void push(PacketFifo& fifo, uint32_t id) noexcept {
    packets_[id].next = kNone;
    (fifo.empty() ? fifo.head : packets_[fifo.tail].next) = id;
    fifo.tail = id;
    fifo.bytes += packets_[id].length_bytes;
  }
  // Precondition: it is not empty.
  uint32_t pop(PacketFifo& fifo) noexcept {
    const uint32_t id = fifo.head;
    fifo.head = packets_[id].next;
    fifo.bytes -= packets_[id].length_bytes;
    return id;
  }

 private:
  std::vector<Packet<Frame>> packets_;
  uint32_t free_ = kNone;
  size_t in_use_ = 0;
};

}  // namespace rocemu::network
