// How many hops of packets through output queues a core does a second: hosts of a leaf-spine send
// at a load, and nothing else is done with the packets. No payload is moved.
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/byte_order.h"
#include "base/random.h"
#include "network/mac.h"
#include "network/switching/network.h"
#include "network/topology/kinds.h"
#include "tests/bench/arguments.h"

namespace {

using namespace rocemu;
using namespace rocemu::network;

// A packet whose headers are in a table by sender and receiver.
struct HeaderFrame {
  std::byte* headers = nullptr;
  uint32_t length_bytes = 0;
};

struct HeaderFrames {
  using Frame = HeaderFrame;
  static const std::byte* bytes(const Frame& frame) { return frame.headers; }
  static size_t length_bytes(const Frame& frame) { return frame.length_bytes; }
  static size_t readable_bytes(const Frame&) { return kMaxHeaderBytes; }
  static void share(const Frame&, unsigned) {}
  static void release(const Frame&) {}
  static std::byte* writable(Frame& frame) { return frame.headers; }
  static void shorten(Frame& frame, size_t length_bytes) {
    frame.length_bytes = static_cast<uint32_t>(length_bytes);
  }
};

struct Owner {
  void deliver(uint32_t, TimeNs, const HeaderFrame&) { ++delivered; }
  void lose(uint32_t, NetworkLoss, const HeaderFrame&) { ++lost; }
  uint64_t delivered = 0;
  uint64_t lost = 0;
};

std::vector<std::byte> headers_of(uint32_t from, uint32_t to) {
  std::vector<std::byte> bytes(kMaxHeaderBytes);
  store_u8(bytes.data(), 2);
  store_be16(bytes.data() + 4, to);
  store_u8(bytes.data() + 6, 2);
  store_be16(bytes.data() + 10, from);
  store_be16(bytes.data() + 12, 0x0800);
  store_be16(bytes.data() + 14, 0x4502);
  store_u8(bytes.data() + 23, 17);
  store_be32(bytes.data() + 26, from);
  store_be32(bytes.data() + 30, to);
  store_be32(bytes.data() + 34, from << 16 | 4791);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t leaves = 8;
  uint32_t load_percent = 50;
  uint64_t packets = 2'000'000;
  bool lossless = false;
  rocemu::bench::Arguments arguments(
      "network_hops: packet hops a second through the network of switches");
  arguments.count("--leaves", leaves, "Leaf switches, with 16 hosts each and 8 spines");
  arguments.count("--load", load_percent, "Of the hosts' rate, in percent", 200);
  arguments.count("--packets", packets, "How many, of 1000 bytes");
  arguments.flag("--lossless", lossless, "With PFC and ECN");
  if (const auto code = arguments.parse(argc, argv)) return *code;

  constexpr uint32_t kLength = 1000;
  const Topology topology = leaf_spine(leaves, 8, 16, {});
  NetworkSettings settings;
  if (lossless) {
    settings.switches.pfc.lossless = 1;
    settings.switches.ecn = EcnSettings{100'000, 400'000, 200'000};
  }
  Owner owner;
  Network<HeaderFrames, Owner> network(topology, settings, owner);
  const uint32_t hosts = network.host_count();
  std::vector<std::vector<std::byte>> headers;
  for (uint32_t i = 0; i < hosts; ++i) {
    network.add_mac(mac_number({2, 0, 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)}),
                    i);
    for (uint32_t j = 0; j < hosts; ++j) headers.push_back(headers_of(i, j));
  }

  Random random(1);
  const double gap_ns = 80.0 * 100 / load_percent / hosts;
  double at = 0;
  const std::clock_t started = std::clock();
  for (uint64_t i = 0; i < packets; ++i) {
    const auto now = static_cast<TimeNs>(at += gap_ns);
    network.advance(now);
    const auto from = static_cast<uint32_t>(random.below(hosts));
    const auto to = static_cast<uint32_t>((from + 1 + random.below(hosts - 1)) % hosts);
    network.send(from, now, {headers[size_t{from} * hosts + to].data(), kLength});
  }
  while (network.next_event() != kNever) network.advance(network.next_event());
  const double took_s = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;

  uint64_t hops = 0;
  for (uint32_t port = 0; port < network.port_count(); ++port)
    hops += network.counters(port).frames;
  std::printf(
      "%llu packets, %llu delivered, %llu lost, %llu hops in %.3f s of a core: %.0f hops/s\n",
      static_cast<unsigned long long>(packets), static_cast<unsigned long long>(owner.delivered),
      static_cast<unsigned long long>(owner.lost), static_cast<unsigned long long>(hops), took_s,
      static_cast<double>(hops) / took_s);
}
