#include "dpdk_io/switch/switch.h"

#include <rte_mbuf.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "dpdk_io/port/pcap.h"
#include "tests/unit/dpdk_io/network.h"
#include "tests/unit/dpdk_io/pcap_file.h"

namespace rocemu::dpdk_io {
TEST_CASE_METHOD(Network, "unicast reaches the port with that MAC, in order, and no other") {
  send(alice, {frame(kBob, "1"), frame(kCarol, "2"), frame(kBob, "3")});
  CHECK(bob.has_work());
  CHECK_FALSE(alice.has_work());
  CHECK(receive(bob) == Texts{"1", "3"});
  CHECK(receive(carol) == Texts{"2"});
  CHECK_FALSE(bob.has_work());
}

TEST_CASE_METHOD(Network, "a frame keeps its buffer on the way") {
  rte_mbuf* sent = frame(kBob, "same");
  send(alice, {sent});
  std::array<rte_mbuf*, 2> burst{};
  REQUIRE(bob.receive(now_ns, burst) == 1);
  CHECK(burst[0] == sent);
  FramePool::free(burst[0]);
}

TEST_CASE_METHOD(Network, "a device may talk to itself") {
  send(alice, {frame(kAlice, "note to self")});
  CHECK(receive(alice) == Texts{"note to self"});
}

TEST_CASE_METHOD(Network, "broadcast and multicast reach everybody else, as one buffer") {
  const Mac& to = GENERATE_COPY(kBroadcast, kMulticast);
  rte_mbuf* sent = frame(to, "all");
  send(alice, {sent});
  CHECK(rte_mbuf_refcnt_read(sent) == 2);
  CHECK(pool.available() == kFrames - 1);
  CHECK(receive(bob) == Texts{"all"});
  CHECK(receive(carol) == Texts{"all"});
  CHECK(receive(alice).empty());
}

TEST_CASE_METHOD(Network, "a MAC nobody has is counted at the sender") {
  send(alice, {frame(kNobody, "1"), frame(kBob, "2"), frame(kNobody, "3"), frame(Mac{}, "4")});
  CHECK(receive(bob) == Texts{"2"});
  CHECK(alice.stats().dropped(DropReason::unknown_destination) == 3);
  CHECK(alice.stats().tx_frames == 4);
}

TEST_CASE_METHOD(Network, "a port added later is found by the very next frame") {
  send(alice, {frame(kNobody, "too early")});
  Port& late = fabric.add_port(kNobody, "late");
  send(alice, {frame(kNobody, "in time")});
  CHECK(receive(late) == Texts{"in time"});
}

TEST_CASE_METHOD(Network, "a full queue drops the newest, counted at the receiver") {
  for (unsigned i = 0; i < kQueueFrames + 3; ++i) send(alice, {frame(kBob, std::to_string(i))});
  send(carol, {frame(kBroadcast, "no room either", kCarol)});
  CHECK(bob.stats().dropped(DropReason::queue_full) == 4);
  const Texts received = receive(bob);
  REQUIRE(received.size() == kQueueFrames);
  CHECK(received.back() == std::to_string(kQueueFrames - 1));
  CHECK(receive(alice) == Texts{"no room either"});

  send(alice, {frame(kBob, "room again")});
  CHECK(receive(bob) == Texts{"room again"});
}

TEST_CASE_METHOD(Network, "a frame too short or in pieces is dropped as malformed") {
  rte_mbuf* runt = frame(kBob, "");
  rte_pktmbuf_trim(runt, 1);
  rte_mbuf* pieces = frame(kBob, "first piece");
  REQUIRE(rte_pktmbuf_chain(pieces, frame(kBob, "second")) == 0);
  send(alice, {runt, pieces});
  CHECK(alice.stats().dropped(DropReason::malformed) == 2);
  CHECK_FALSE(bob.has_work());
}

TEST_CASE_METHOD(Network, "frames and bytes are counted on both sides") {
  send(alice, {frame(kBob, "123456"), frame(kBob, "")});
  receive(bob);
  CHECK(alice.stats().tx_frames == 2);
  CHECK(alice.stats().tx_bytes == 34);
  CHECK(bob.stats().rx_frames == 2);
  CHECK(bob.stats().rx_bytes == 34);
  CHECK(alice.poll_fd() == -1);
}

TEST_CASE_METHOD(Network, "an empty burst does nothing") {
  send(alice, {});
  CHECK(bob.receive(now_ns, {}) == 0);
  CHECK(alice.stats().tx_frames == 0);
}

TEST_CASE_METHOD(Network, "a capture has every frame on the wire once, dropped or flooded") {
  const TemporaryCapture file;
  PcapWriter writer(file.path());
  uint64_t realtime_ns = 1000;
  fabric.set_capture(&writer, [&] { return realtime_ns++; });
  send(alice, {frame(kBob, "one"), frame(kNobody, "two")});
  send(bob, {frame(kBroadcast, "three", kBob)});
  fabric.set_capture(nullptr, {});
  send(alice, {frame(kBob, "not recorded")});
  writer.flush();

  const PcapFile written = read_pcap(file.path());
  REQUIRE(written.frames.size() == 3);
  CHECK(written.frames[0].bytes.substr(kAddressesBytes) == "one");
  CHECK(written.frames[1].bytes.substr(kAddressesBytes) == "two");
  CHECK(written.frames[2].bytes.substr(kAddressesBytes) == "three");
  CHECK(written.frames[1].realtime_ns == 1000);
  CHECK(written.frames[2].realtime_ns == 1001);
  CHECK_THROWS_WITH(fabric.set_capture(&writer, {}), Catch::Contains("needs a clock"));
}

TEST_CASE_METHOD(Network, "a MAC that cannot be a port's is refused") {
  CHECK_THROWS_WITH(fabric.add_port(kBroadcast, "x"), Catch::Contains("port x: its MAC"));
  CHECK_THROWS_WITH(fabric.add_port(Mac{}, "x"), Catch::Contains("port x: its MAC"));
  CHECK_THROWS_WITH(fabric.add_port(kBob, "x"), Catch::Contains("that of port bob"));
}

TEST_CASE_METHOD(Network, "a switch has a bounded number of ports") {
  for (unsigned i = 3; i < Switch::kMaxPorts; ++i) {
    fabric.add_port({0x02, 1, 0, 0, 0, static_cast<uint8_t>(i)}, "port");
  }
  CHECK_THROWS_WITH(fabric.add_port(kNobody, "x"), Catch::Contains("64 ports already"));
}

TEST_CASE_METHOD(Network,
                 "a switch that holds frames back hands out what had arrived, and no more") {
  send(alice, {frame(kBob, "before")});
  fabric.hold(now_ns);
  send(alice, {frame(kBob, "1"), frame(kBob, "2")});
  send(bob, {frame(kAlice, "3", kBob), frame(kNobody, "lost", kBob)});
  CHECK(receive(bob) == Texts{"before"});
  CHECK_FALSE(alice.has_work());
  CHECK(alice.stats().tx_frames == 3);
  CHECK(bob.stats().dropped(DropReason::unknown_destination) == 0);

  fabric.carry_held(now_ns);
  CHECK(receive(bob) == Texts{"1", "2"});
  CHECK(receive(alice) == Texts{"3"});
  CHECK(bob.stats().dropped(DropReason::unknown_destination) == 1);
  send(alice, {frame(kBob, "after")});
  CHECK(receive(bob) == Texts{"after"});
}

TEST_CASE_METHOD(Network, "a port takes as many frames as it can hold back") {
  std::vector<rte_mbuf*> burst(kFrames);
  REQUIRE(pool.allocate_bulk(burst) == kFrames);
  for (rte_mbuf* sent : burst) rte_pktmbuf_append(sent, kAddressesBytes);
  rte_mbuf* again = burst[0];
  rte_mbuf_refcnt_update(again, 1);
  fabric.hold(now_ns);
  CHECK(alice.transmit(now_ns, burst) == Switch::kMaxHeld);
  CHECK(alice.transmit(now_ns, std::span(&again, 1)) == 0);
  CHECK(alice.stats().tx_frames == Switch::kMaxHeld);
  FramePool::free(again);
  fabric.carry_held(now_ns);
}

TEST_CASE("frames still queued go back to the pool with the switch") {
  need_eal();
  FramePool pool("queued", kFrames, 256);
  {
    Switch fabric(pool);
    Port& alice = fabric.add_port(kAlice, "alice");
    rte_mbuf* sent = pool.allocate();
    std::memcpy(rte_pktmbuf_append(sent, kAddressesBytes), kAlice.data(), kAlice.size());
    if (GENERATE(false, true)) fabric.hold(0);
    alice.transmit(0, std::span(&sent, 1));
    CHECK(pool.available() == kFrames - 1);
  }
  CHECK(pool.available() == kFrames);
}

}  // namespace rocemu::dpdk_io
