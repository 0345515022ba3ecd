// A port on DPDK's ring device, whose end is its own beginning.
#include "dpdk_io/ethdev/ethdev_port.h"

#include <rte_mbuf.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/net/text.h"
#include "base/time.h"
#include "dpdk_io/ip_host/arp.h"
#include "dpdk_io/port/owed_icrc.h"
#include "tests/unit/dpdk_io/shared_eal.h"
#include "tests/unit/time_units.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint16_t kPort = 4791;
constexpr unsigned kFrames = 2048;  // more than the ring takes
constexpr MacAddress kOwnMac = {2, 0, 0, 0, 0, 1};
constexpr MacAddress kPeerMac = {2, 0, 0, 0, 0, 2};

std::unique_ptr<EthernetDevice> ring_device() {
  static unsigned number = 0;
  need_eal();
  return std::make_unique<EthernetDevice>(EthernetDeviceRequest{
      EthernetDeviceRequest::Bus::vdev, "net_ring" + std::to_string(number++), 0, kOwnMac});
}

struct Loop {
  explicit Loop(uint16_t vlan_id = 0)
      : device(ring_device()),
        pool("loop", kFrames, 512),
        port(*device, {{{{parse_ip_address("10.0.0.1").value(), 24}}, {}}, vlan_id, kPort, 300},
             pool, 1) {}
  ~Loop() {
    receive(64 * kMs);
    CHECK(pool.available() == kFrames);
  }

  rte_mbuf* frame_of(const Frame& bytes) {
    rte_mbuf* const frame = pool.allocate();
    REQUIRE(frame != nullptr);
    std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    return frame;
  }
  rte_mbuf* datagram(const MacAddress& to, uint16_t udp_port, size_t bytes = 60) {
    Frame frame = begin_frame(to, kPeerMac, kEtherTypeIpv4);
    frame.resize(bytes);
    frame[kEthernetBytes] = 0x45;
    frame[kEthernetBytes + 9] = kIpProtocolUdp;
    store_be16(&frame[kEthernetBytes + kIpv4Bytes + 2], udp_port);
    return frame_of(frame);
  }
  unsigned send(rte_mbuf* frame, uint64_t now = 1) { return port.transmit(now, {&frame, 1}); }
  // How many came; they are freed.
  unsigned receive(uint64_t now) {
    std::array<rte_mbuf*, 32> burst;
    const unsigned count = port.receive(now, burst);
    for (rte_mbuf* frame : std::span(burst).first(count)) {
      last.assign(rte_pktmbuf_mtod(frame, const uint8_t*),
                  rte_pktmbuf_mtod(frame, const uint8_t*) + frame->data_len);
      FramePool::free(frame);
    }
    return count;
  }
  // What lies on the ring, past the port.
  Frame take_off_the_wire() {
    rte_mbuf* frame = nullptr;
    REQUIRE(device->receive({&frame, 1}) == 1);
    const auto* const start = rte_pktmbuf_mtod(frame, const uint8_t*);
    Frame bytes(start, start + frame->data_len);
    FramePool::free(frame);
    return bytes;
  }

  std::unique_ptr<EthernetDevice> device;
  FramePool pool;
  EthdevPort port;
  Frame last;
};

}  // namespace

TEST_CASE("a port that pauses has nothing to do") {
  Loop loop;
  for (int i = 0; i < 32; ++i) REQUIRE(loop.send(loop.datagram(kOwnMac, kPort)) == 1);
  CHECK(loop.receive(1) == 32);
  CHECK(loop.port.has_work());
  loop.port.pause();
  CHECK_FALSE(loop.port.has_work());
}

TEST_CASE("datagrams to the port's MAC or a group are the NIC's, everything else is not") {
  Loop loop;
  CHECK(loop.device->mac() == kOwnMac);
  CHECK(loop.device->link_is_up());
  CHECK(loop.send(loop.datagram(kOwnMac, kPort)) == 1);
  CHECK(loop.receive(1) == 1);
  loop.send(loop.datagram({1, 0, 0x5e, 1, 2, 3}, kPort));
  CHECK(loop.receive(1) == 1);
  loop.send(loop.datagram(kPeerMac, kPort));
  CHECK(loop.receive(1) == 0);
  loop.send(loop.datagram(kOwnMac, 53));
  CHECK(loop.receive(1) == 0);
  rte_mbuf* too_long = loop.datagram(kOwnMac, kPort, 301);
  REQUIRE(loop.device->transmit({&too_long, 1}) == 1);
  CHECK(loop.receive(1) == 0);
  CHECK(loop.port.stats().rx_frames == 2);
  CHECK(loop.port.stats().tx_frames == 4);
  CHECK(loop.port.stats().dropped(DropReason::malformed) == 1);
}

TEST_CASE("other frames for the port's MAC or a group are the NIC's as well when it wants them") {
  Loop loop;
  loop.port.want_other_frames(true);
  loop.send(loop.datagram(kOwnMac, 53));
  CHECK(loop.receive(1) == 1);
  loop.send(loop.datagram(kPeerMac, 53));
  CHECK(loop.receive(1) == 0);
  // The host answers all the same.
  const Frame question = build_arp_request(kPeerMac, parse_ip_address("10.0.0.2").value(),
                                           parse_ip_address("10.0.0.1").value());
  loop.send(loop.frame_of(question));
  CHECK(loop.receive(1) == 1);
  CHECK(loop.last == question);
  CHECK(loop.port.host().stats().neighbour_answers == 1);
  CHECK(ether_type_of(loop.take_off_the_wire()) == kEtherTypeArp);
  loop.port.want_other_frames(false);
  loop.send(loop.datagram(kOwnMac, 53));
  CHECK(loop.receive(1) == 0);
}

TEST_CASE("a frame that is too long for the device is lost, and those around it are not") {
  Loop loop;
  std::array<rte_mbuf*, 3> burst = {loop.datagram(kOwnMac, kPort),
                                    loop.datagram(kOwnMac, kPort, 301),
                                    loop.datagram(kOwnMac, kPort)};
  for (std::span<rte_mbuf*> rest(burst); !rest.empty();) {
    const unsigned taken = loop.port.transmit(1, rest);
    REQUIRE(taken == 1);
    rest = rest.subspan(taken);
  }
  CHECK(loop.port.stats().tx_frames == 2);
  CHECK(loop.port.stats().dropped(DropReason::refused_by_kernel) == 1);
  CHECK(loop.receive(1) == 2);
}

TEST_CASE("what comes from outside owes no ICRC, whatever the driver has left in its mbuf") {
  Loop loop;
  rte_mbuf* frame = loop.datagram(kOwnMac, kPort);
  owe_icrc(frame, kEthernetBytes);
  loop.send(frame);
  rte_mbuf* received = nullptr;
  REQUIRE(loop.port.receive(1, {&received, 1}) == 1);
  CHECK_FALSE(owes_icrc(received));
  FramePool::free(received);
}

TEST_CASE("a question is answered by the port itself") {
  Loop loop;
  const IpAddress own = parse_ip_address("10.0.0.1").value();
  const IpAddress peer = parse_ip_address("10.0.0.2").value();
  loop.send(loop.frame_of(build_arp_request(kPeerMac, peer, own)));
  CHECK(loop.receive(1) == 0);
  CHECK(loop.take_off_the_wire() == build_arp_reply(kOwnMac, own, kPeerMac, peer));
}

TEST_CASE("frames bear the port's VLAN on the wire, and no other comes in") {
  Loop loop(7);
  rte_mbuf* const held = loop.datagram(kOwnMac, kPort);
  rte_mbuf_refcnt_update(held, 1);
  CHECK(loop.send(held) == 1);
  CHECK(ether_type_of({rte_pktmbuf_mtod(held, const uint8_t*), held->data_len}) == kEtherTypeIpv4);
  FramePool::free(held);
  const Frame tagged = loop.take_off_the_wire();
  CHECK(tagged.size() == 64);
  CHECK(load_be16(&tagged[12]) == 0x8100);
  CHECK(load_be16(&tagged[14]) == 7);
  CHECK(load_be16(&tagged[16]) == kEtherTypeIpv4);

  loop.send(loop.datagram(kOwnMac, kPort));
  CHECK(loop.receive(1) == 1);
  CHECK(loop.last.size() == 60);
  CHECK(ether_type_of(loop.last) == kEtherTypeIpv4);

  for (const uint16_t tag : {uint16_t{0x8100}, kEtherTypeIpv4}) {
    Frame other = tagged;
    store_be16(&other[12], tag);
    store_be16(&other[14], 8);
    rte_mbuf* frame = loop.frame_of(other);
    REQUIRE(loop.device->transmit({&frame, 1}) == 1);
    CHECK(loop.receive(1) == 0);
  }
  CHECK(loop.port.stats().dropped(DropReason::malformed) == 0);
}

TEST_CASE("frames that the other end does not take wait for 10 ms, and are lost then") {
  Loop loop(7);
  rte_mbuf* frame = nullptr;
  while (loop.send(frame = loop.datagram(kOwnMac, kPort), kMs) == 1) {
  }
  CHECK(loop.send(frame, 5 * kMs) == 0);
  CHECK(loop.send(frame, 12 * kMs) == 1);
  CHECK(loop.port.stats().dropped(DropReason::queue_full) == 1);
  while (loop.receive(1) != 0) {
  }
}

TEST_CASE("a port that is looked at by time is so less and less often") {
  Loop loop;
  loop.send(loop.datagram(kOwnMac, kPort), 100 * kMs);
  CHECK(loop.receive(100 * kMs) == 1);
  CHECK(loop.port.next_arrival_ns() == 100 * kMs + 20'000);
  loop.receive(104 * kMs);
  CHECK(loop.port.next_arrival_ns() == 105 * kMs);
  loop.receive(10'000 * kMs);
  CHECK(loop.port.next_arrival_ns() == 10'000 * kMs + EthdevPort::kLongestPauseNs);
  loop.port.pause();
  CHECK(loop.port.next_arrival_ns() == kNever);
  loop.port.resume();
}

TEST_CASE("a device that cannot be had says why") {
  need_eal();
  const auto why = [](const char* arguments) -> std::string {
    try {
      EthernetDevice device({EthernetDeviceRequest::Bus::vdev, arguments, 0, kOwnMac});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return {};
  };
  CHECK_THAT(why("net_nosuch0"), Catch::Contains("no driver"));
  CHECK_THAT(why("net_memif7,role=judge"), Catch::Contains("Unknown role: judge"));
  EthernetDevice first({EthernetDeviceRequest::Bus::vdev, "net_ring77", 0, kOwnMac});
  CHECK_THAT(why("net_ring77"), Catch::Contains("another port's already"));
}

}  // namespace rocemu::dpdk_io
