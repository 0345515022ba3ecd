// Links with impairments, in virtual time.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "base/time.h"
#include "dpdk_io/port/pcap.h"
#include "dpdk_io/switch/switch.h"
#include "impairment/grammar.h"
#include "tests/unit/dpdk_io/network.h"
#include "tests/unit/dpdk_io/pcap_file.h"

namespace rocemu::dpdk_io {
namespace {

using impairment::Direction;

struct Links : Network {
  void set(LinkedPort& port, Direction direction, const std::string& text) {
    const impairment::ParsedSpec parsed = impairment::parse_spec(text);
    REQUIRE(parsed.error == "");
    port.set_link(direction, *parsed.spec);
  }

  // Sends `count` numbered frames from alice to bob, one a microsecond, and takes what has arrived
  // after each.
  Texts exchange(unsigned count) {
    Texts arrived;
    for (unsigned i = 0; i < count; ++i, now_ns += 1000) {
      send(alice, {frame(kBob, std::to_string(i))});
      for (std::string& text : receive(bob)) arrived.push_back(std::move(text));
    }
    now_ns += 1'000'000'000;
    for (std::string& text : receive(bob)) arrived.push_back(std::move(text));
    return arrived;
  }

  uint64_t drops(const Port& port, DropReason reason) { return port.stats().dropped(reason); }
};

}  // namespace

TEST_CASE_METHOD(Links,
                 "a delayed frame whose time has come is there before frames are held back") {
  set(alice, Direction::transmit, "delay=20us");
  send(alice, {frame(kBob, "1")});
  now_ns += 20'000;
  fabric.hold(now_ns);
  CHECK(receive(bob) == Texts{"1"});
  send(alice, {frame(kBob, "2")});
  CHECK(bob.next_arrival_ns() == kNever);
  fabric.carry_held(now_ns);
  CHECK(bob.next_arrival_ns() == now_ns + 20'000);
  now_ns += 20'000;
  CHECK(receive(bob) == Texts{"2"});
}

TEST_CASE_METHOD(Links, "a delayed frame arrives at its time, and the port says when that is") {
  set(alice, Direction::transmit, "delay=20us");
  CHECK(bob.next_arrival_ns() == kNever);
  now_ns = 1000;
  send(alice, {frame(kBob, "late")});
  CHECK_FALSE(bob.has_work());
  CHECK(bob.next_arrival_ns() == 21'000);
  now_ns = 20'999;
  CHECK(receive(bob).empty());
  now_ns = 21'000;
  CHECK(receive(bob) == Texts{"late"});
  CHECK(bob.next_arrival_ns() == kNever);
}

TEST_CASE_METHOD(Links, "any port's turn moves on what is due, also to other ports") {
  set(alice, Direction::transmit, "delay=20us");
  send(alice, {frame(kBob, "1")});
  now_ns = 20'000;
  CHECK(receive(carol).empty());
  CHECK(bob.has_work());
  CHECK(receive(bob) == Texts{"1"});
}

TEST_CASE_METHOD(Links, "each direction of each port has its own impairments") {
  set(alice, Direction::transmit, "delay=10us");
  set(bob, Direction::receive, "delay=5us");
  send(alice, {frame(kBob, "both"), frame(kCarol, "first")});
  send(carol, {frame(kBob, "second", kCarol), frame(kAlice, "neither", kCarol)});
  CHECK(receive(alice) == Texts{"neither"});
  now_ns = 5'000;
  CHECK(receive(bob) == Texts{"second"});
  now_ns = 10'000;
  CHECK(receive(carol) == Texts{"first"});
  CHECK(receive(bob).empty());
  CHECK(bob.next_arrival_ns() == 15'000);
  now_ns = 15'000;
  CHECK(receive(bob) == Texts{"both"});
}

TEST_CASE_METHOD(Links, "both links are timed exactly when the engine comes late") {
  set(alice, Direction::transmit, "delay=10us");
  set(bob, Direction::receive, "delay=5us");
  send(alice, {frame(kBob, "1")});
  now_ns = 12'000;
  CHECK(receive(bob).empty());
  CHECK(bob.next_arrival_ns() == 15'000);
}

TEST_CASE_METHOD(Links, "jitter keeps the order; frames of one time keep theirs") {
  set(alice, Direction::transmit, "delay=5us,jitter=20us");
  const Texts arrived = exchange(200);
  REQUIRE(arrived.size() == 200);
  for (unsigned i = 0; i < 200; ++i) CHECK(arrived[i] == std::to_string(i));
}

TEST_CASE_METHOD(Links, "loss is by seed, is counted, and is the same again with the same seed") {
  set(alice, Direction::transmit, "loss=10%,seed=7");
  const Texts first = exchange(1000);
  const uint64_t lost = drops(alice, DropReason::impairment_loss);
  CHECK(first.size() + lost == 1000);
  CHECK(lost > 60);
  CHECK(lost < 140);
  network::LinkReport report = alice.link(Direction::transmit);
  CHECK(report.stats.frames == 1000);
  CHECK(report.stats.lost == lost);
  CHECK(to_text(report.spec) == "loss=10%,seed=7");

  set(alice, Direction::transmit, "loss=10%,seed=7");
  CHECK(alice.link(Direction::transmit).stats.frames == 0);
  CHECK(exchange(1000) == first);
  set(alice, Direction::transmit, "loss=10%,seed=8");
  CHECK(exchange(1000) != first);
}

TEST_CASE_METHOD(Links, "a duplicate is the same frame again") {
  set(alice, Direction::transmit, "dup=100%");
  CHECK(exchange(3) == Texts{"0", "0", "1", "1", "2", "2"});
  CHECK(alice.link(Direction::transmit).stats.duplicated == 3);
}

TEST_CASE_METHOD(Links, "a reordered frame is overtaken, and none is lost") {
  set(alice, Direction::transmit, "reorder=10%/20us");
  const Texts arrived = exchange(500);
  CHECK(std::set<std::string>(arrived.begin(), arrived.end()).size() == 500);
  unsigned out_of_place = 0;
  for (unsigned i = 0; i < 500; ++i) out_of_place += arrived[i] != std::to_string(i);
  CHECK(out_of_place > 50);
}

TEST_CASE_METHOD(Links, "corruption changes one byte of the receiver's frame, not of others'") {
  set(bob, Direction::receive, "corrupt=100%");
  const std::string sent(64, 'x');
  const auto differences = [&](const std::string& text) {
    unsigned count = 0;
    for (size_t i = 0; i < sent.size(); ++i) count += text[i] != sent[i];
    return count;
  };
  unsigned in_payload = 0;
  for (int i = 0; i < 50; ++i) {
    send(alice, {frame(kBroadcast, sent)});
    CHECK(receive(carol) == Texts{sent});
    const Texts received = receive(bob);
    REQUIRE(received.size() == 1);
    CHECK(differences(received[0]) <= 1);
    in_payload += differences(received[0]);
  }
  CHECK(in_payload > 20);
  CHECK(bob.link(Direction::receive).stats.corrupted == 50);
}

TEST_CASE_METHOD(Links, "a corrupted duplicate leaves the other one as it was") {
  set(alice, Direction::transmit, "dup=100%,corrupt=50%,delay=1us");
  const std::string sent(200, 'x');
  unsigned whole = 0, all = 0;
  for (int i = 0; i < 100; ++i) {
    send(alice, {frame(kBob, sent)});
    now_ns += 1000;
    for (const std::string& text : receive(bob)) {
      ++all;
      whole += text == sent;
    }
    receive(carol);
  }
  CHECK(all > 150);
  CHECK(whole > 60);
  CHECK(whole < 140);
}

TEST_CASE_METHOD(Links, "a corrupted destination goes astray") {
  set(alice, Direction::transmit, "corrupt=100%");
  unsigned arrived = 0;
  for (int i = 0; i < 200; ++i) {
    send(alice, {frame(kBob, "")});
    arrived += static_cast<unsigned>(receive(bob).size());
    receive(carol);
  }
  CHECK(arrived < 200);
  CHECK(drops(alice, DropReason::unknown_destination) > 0);
}

TEST_CASE_METHOD(Links, "what exceeds the queue of the rate is dropped and counted") {
  set(alice, Direction::transmit, "rate=1mbit,queue=60b");
  send(alice, {frame(kBob, "123456"), frame(kBob, "123456"), frame(kBob, "123456"),
               frame(kBob, "123456")});
  CHECK(drops(alice, DropReason::impairment_queue) == 1);
  CHECK(bob.next_arrival_ns() == 160'000);
  now_ns = 320'000;
  CHECK(receive(bob).size() == 2);
  now_ns = 480'000;
  CHECK(receive(bob).size() == 1);
  CHECK(alice.link(Direction::transmit).stats.lost_in_queue == 1);
}

TEST_CASE_METHOD(Links, "an outage loses all") {
  set(alice, Direction::transmit, "outage=1ms/1ns");
  exchange(1000);
  CHECK(drops(alice, DropReason::impairment_outage) > 900);
}

TEST_CASE_METHOD(Links, "with every buffer under way there is no room for more copies") {
  set(alice, Direction::transmit, "dup=100%,delay=1ms");
  for (unsigned i = 0; i < 150; ++i) send(alice, {frame(kBob, "x")});
  CHECK(drops(alice, DropReason::impairment_queue) == 300 - kFrames);
  now_ns = 1'000'000;
  CHECK(receive(bob).size() == kQueueFrames);
  CHECK(drops(bob, DropReason::queue_full) == kFrames - kQueueFrames);
}

TEST_CASE_METHOD(Links, "frames under way arrive when the impairments are gone") {
  set(alice, Direction::transmit, "delay=20us");
  send(alice, {frame(kBob, "slow")});
  set(alice, Direction::transmit, "none");
  send(alice, {frame(kBob, "fast")});
  CHECK(receive(bob) == Texts{"fast"});
  CHECK(bob.next_arrival_ns() == 20'000);
  now_ns = 20'000;
  CHECK(receive(bob) == Texts{"slow"});
  CHECK(alice.link(Direction::transmit).spec == impairment::Spec{});
}

TEST_CASE_METHOD(Links, "malformed frames do not reach a link") {
  set(alice, Direction::transmit, "loss=100%");
  rte_mbuf* runt = frame(kBob, "");
  rte_pktmbuf_trim(runt, 1);
  send(alice, {runt});
  CHECK(drops(alice, DropReason::malformed) == 1);
  CHECK(alice.link(Direction::transmit).stats.frames == 0);
}

TEST_CASE_METHOD(Links, "a capture shows what comes out of the sender's link") {
  const TemporaryCapture file;
  PcapWriter writer(file.path());
  fabric.set_capture(&writer, [&] { return now_ns; });
  set(alice, Direction::transmit, "dup=100%,delay=20us");
  set(bob, Direction::receive, "loss=100%");
  send(alice, {frame(kBob, "twice")});
  now_ns = 20'000;
  receive(bob);
  set(alice, Direction::transmit, "loss=100%");
  send(alice, {frame(kBob, "never")});
  fabric.set_capture(nullptr, {});
  writer.flush();

  const PcapFile written = read_pcap(file.path());
  REQUIRE(written.frames.size() == 2);
  for (const auto& record : written.frames) {
    CHECK(record.bytes.substr(kAddressesBytes) == "twice");
    CHECK(record.realtime_ns == 20'000);
  }
}

TEST_CASE("frames under way go back to the pool with the switch") {
  need_eal();
  FramePool pool("under way", kFrames, 256);
  {
    Switch fabric(pool);
    LinkedPort& alice = fabric.add_port(kAlice, "alice");
    alice.set_link(Direction::transmit, {.impairments = {.delay_ns = 1000}});
    rte_mbuf* sent = pool.allocate();
    std::memcpy(rte_pktmbuf_append(sent, kAddressesBytes), kAlice.data(), kAlice.size());
    alice.transmit(0, std::span(&sent, 1));
    CHECK(pool.available() == kFrames - 1);
  }
  CHECK(pool.available() == kFrames);
}

}  // namespace rocemu::dpdk_io
