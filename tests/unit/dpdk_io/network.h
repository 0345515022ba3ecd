// Three ports on one switch, and a clock that tests set.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "dpdk_io/switch/switch.h"
#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {

using Mac = std::array<uint8_t, 6>;

inline constexpr Mac kAlice{0x02, 0, 0, 0, 0, 0x0a};
inline constexpr Mac kBob{0x02, 0, 0, 0, 0, 0x0b};
inline constexpr Mac kCarol{0x02, 0, 0, 0, 0, 0x0c};
inline constexpr Mac kNobody{0x02, 0, 0, 0, 0, 0xff};
inline constexpr Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
inline constexpr Mac kMulticast{0x33, 0x33, 0, 0, 0, 1};
inline constexpr unsigned kFrames = 256;
inline constexpr unsigned kQueueFrames = 32;
inline constexpr size_t kAddressesBytes = 14;

// Every test ends with all frames back in the pool.
struct NetworkOf {
  explicit NetworkOf(void (*set_up)(Switch&)) : fabric_set_up(fabric, set_up) {}
  ~NetworkOf() {
    now_ns = kNever - 1;
    for (LinkedPort* port : {&alice, &bob, &carol}) receive(*port);
    CHECK(pool.available() == kFrames);
  }

  rte_mbuf* frame(const Mac& to, const std::string& text, const Mac& from = kAlice) {
    rte_mbuf* result = pool.allocate();
    REQUIRE(result != nullptr);
    const std::string bytes = std::string(to.begin(), to.end()) +
                              std::string(from.begin(), from.end()) + "\x08\x01" + text;
    std::memcpy(rte_pktmbuf_append(result, static_cast<uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    return result;
  }

  void send(Port& port, std::vector<rte_mbuf*> frames) {
    CHECK(port.transmit(now_ns, frames) == frames.size());
  }

  // Returns what follows the Ethernet header of each frame that waits at the port.
  std::vector<std::string> receive(Port& port) {
    std::vector<std::string> texts;
    std::array<rte_mbuf*, 7> burst;
    while (const unsigned count = port.receive(now_ns, burst)) {
      for (rte_mbuf* received : std::span(burst).first(count)) {
        texts.emplace_back(rte_pktmbuf_mtod_offset(received, const char*, kAddressesBytes),
                           received->data_len - kAddressesBytes);
        FramePool::free(received);
      }
    }
    return texts;
  }

  uint64_t now_ns = 0;
  struct Started {
    Started() { need_eal(); }
  } started;
  FramePool pool{"network", kFrames, 256};
  Switch fabric{pool, kQueueFrames};
  // SetUp does what is to be done to the switch before it has ports.
  struct SetUp {
    SetUp(Switch& of, void (*set_up)(Switch&)) { set_up(of); }
  } fabric_set_up;
  LinkedPort& alice = fabric.add_port(kAlice, "alice");
  LinkedPort& bob = fabric.add_port(kBob, "bob");
  LinkedPort& carol = fabric.add_port(kCarol, "carol");
};

struct Network : NetworkOf {
  Network() : NetworkOf([](Switch&) {}) {}
};

using Texts = std::vector<std::string>;

}  // namespace rocemu::dpdk_io
