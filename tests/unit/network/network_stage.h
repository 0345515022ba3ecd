// Frames as hosts send them, and a network whose owner writes down what comes.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "network/mac.h"
#include "network/shared_frame.h"
#include "network/switching/network.h"
#include "network/topology/kinds.h"

namespace rocemu::network {

// At this rate a byte takes a nanosecond.
inline constexpr LinkSettings kByteNs{.rate_bits_per_s = 8'000'000'000, .delay_ns = 100};

inline constexpr uint8_t kEct0 = 2;
inline constexpr uint8_t kCe = 3;

// A RoCEv2 packet over IPv4 from host to host; its first payload byte tells it from others.
struct Sent {
  uint32_t from = 0;
  uint32_t to = 0;
  size_t length_bytes = 1000;
  uint8_t dscp = 0;
  uint8_t ecn = 0;
  uint16_t source_port = 0xc000;
  uint8_t tag = 0;
};

inline std::vector<std::byte> frame_of(const Sent& sent) {
  std::vector<std::byte> bytes(sent.length_bytes);
  std::byte* const at = bytes.data();
  at[0] = at[6] = std::byte{2};
  store_be16(at + 4, sent.to);
  store_be16(at + 10, sent.from);
  store_be16(at + 12, 0x0800);
  std::byte* const ip = at + 14;
  store_u8(ip, 0x45);
  store_u8(ip + 1, static_cast<uint32_t>(sent.dscp << 2 | sent.ecn));
  store_be16(ip + 2, static_cast<uint32_t>(sent.length_bytes - 14));
  store_u8(ip + 8, 64);
  store_u8(ip + 9, 17);
  store_be32(ip + 12, 0x0a000000 + sent.from);
  store_be32(ip + 16, 0x0a000000 + sent.to);
  store_be16(ip + 10, internet_checksum(ipv4_header_sum(ip)));
  store_be16(ip + 20, sent.source_port);
  store_be16(ip + 22, 4791);
  store_be16(ip + 24, static_cast<uint32_t>(sent.length_bytes - 34));
  store_u8(ip + 28, sent.tag);
  return bytes;
}

struct Came {
  uint32_t host = 0;
  TimeNs at = 0;
  std::vector<std::byte> bytes;

  uint8_t tag() const { return load_u8(bytes.data() + 42); }
  uint8_t ecn() const { return load_u8(bytes.data() + 15) & 3; }
  uint8_t dscp() const { return load_u8(bytes.data() + 15) >> 2; }
  bool header_is_right() const {
    return internet_checksum(ipv4_header_sum(bytes.data() + 14)) == 0;
  }
};

struct Stage {
  Stage(const Topology& topology, const NetworkSettings& settings)
      : network(topology, settings, *this) {
    REQUIRE(problem(topology).empty());
    for (uint32_t i = 0; i < network.host_count(); ++i)
      network.add_mac(
          mac_number({2, 0, 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)}), i);
  }

  void send(TimeNs now, const Sent& sent) { send_bytes(now, sent.from, frame_of(sent)); }
  void send_bytes(TimeNs now, uint32_t host, std::span<const std::byte> bytes) {
    network.advance(now);
    network.send(host, now, SharedFrame(bytes));
  }
  // Until nothing happens any more by itself, or `until`.
  void run(TimeNs until = kNever - 1) {
    while (network.next_event() <= until) network.advance(network.next_event());
  }

  void deliver(uint32_t host, TimeNs at, const SharedFrame& frame) {
    came.push_back({host, at, {frame.bytes().begin(), frame.bytes().end()}});
  }
  void lose(uint32_t port, NetworkLoss loss, const SharedFrame&) { lost.push_back({port, loss}); }

  // Returns the sum over all ports.
  uint64_t sum(uint64_t PortCounters::*counter) const {
    uint64_t total = 0;
    for (uint32_t i = 0; i < network.port_count(); ++i) total += network.counters(i).*counter;
    return total;
  }
  uint64_t lost_by(NetworkLoss loss) const {
    uint64_t count = 0;
    for (const auto& [port, why] : lost) count += why == loss;
    return count;
  }

  std::vector<Came> came;
  std::vector<std::pair<uint32_t, NetworkLoss>> lost;
  Network<SharedFrames, Stage> network;
};

}  // namespace rocemu::network
