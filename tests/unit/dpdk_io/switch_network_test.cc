// A switch whose ports are hosts of a network, in virtual time.
#include <catch2/catch.hpp>

#include "dpdk_io/switch/switch.h"
#include "impairment/grammar.h"
#include "network/topology/kinds.h"
#include "tests/unit/dpdk_io/network.h"

namespace rocemu::dpdk_io {
namespace {

// A byte takes a nanosecond, a link 1000.
constexpr network::LinkSettings kLink{.rate_bits_per_s = 8'000'000'000, .delay_ns = 1000};

network::NetworkSettings small_queues() {
  network::NetworkSettings settings;
  settings.switches.queue_limit_bytes = 60;
  settings.failures = {{.link = 2, .down_ns = 1'000'000, .up_ns = 2'000'000}};
  return settings;
}

struct Star : NetworkOf {
  Star()
      : NetworkOf([](Switch& of) { of.set_network(network::star(3, kLink), small_queues(), 0); }) {}
};

}  // namespace

TEST_CASE_METHOD(Star, "frames cross the network's links, and ports say when they come") {
  const std::string text(46, 'x');  // 60 bytes with the header
  send(alice, {frame(kBob, text)});
  CHECK(alice.next_arrival_ns() == 60);  // it has left
  now_ns = 2119;
  CHECK(receive(bob).empty());
  CHECK(bob.next_arrival_ns() == 2120);
  now_ns = 2120;
  CHECK(receive(bob) == Texts{text});
  CHECK(bob.next_arrival_ns() == 1'000'000);  // the failure
}

TEST_CASE_METHOD(Star, "what the network loses is counted at its sender") {
  const std::string text(46, 'x');
  send(alice, {frame(kBob, text), frame(kNobody, text)});
  send(carol, {frame(kBob, text, kCarol), frame(kBob, text, kCarol)});
  send(alice, {frame(kBob, text), frame(kBob, text)});
  now_ns = 10'000;
  // At 1060 one of alice leaves the switch and one of carol waits. At 1120 and 1180 the next of
  // alice comes before that one has made room.
  CHECK(receive(bob).size() == 3);
  CHECK(alice.stats().dropped(DropReason::network) == 2);
  CHECK(carol.stats().dropped(DropReason::network) == 0);
  CHECK(alice.stats().dropped(DropReason::unknown_destination) == 1);
  now_ns = 1'500'000;
  send(alice, {frame(kCarol, text)});
  now_ns = 1'510'000;
  CHECK(receive(carol).empty());
  CHECK(alice.stats().dropped(DropReason::network) == 3);
}

TEST_CASE_METHOD(Star, "broadcasts come to all others, once, and own frames at once") {
  send(alice, {frame(kBroadcast, "all")});
  send(alice, {frame(kAlice, "me")});
  CHECK(receive(alice) == Texts{"me"});
  now_ns = 10'000;
  CHECK(receive(bob) == Texts{"all"});
  CHECK(receive(carol) == Texts{"all"});
  CHECK(receive(alice).empty());
}

TEST_CASE_METHOD(Star, "impairments of a port's link come on top") {
  const impairment::ParsedSpec parsed = impairment::parse_spec("delay=5us");
  alice.set_link(impairment::Direction::transmit, *parsed.spec);
  bob.set_link(impairment::Direction::receive, *parsed.spec);
  send(alice, {frame(kBob, std::string(46, 'x'))});
  CHECK(bob.next_arrival_ns() == 5000);
  now_ns = 12'119;
  CHECK(receive(bob).empty());
  now_ns = 12'120;
  CHECK(receive(bob).size() == 1);
}

TEST_CASE_METHOD(Star,
                 "a storm of pauses holds what comes at the network's port, until it is over") {
  CHECK(bob.storm(now_ns, true, false));
  now_ns = 10'000;
  send(alice, {frame(kBob, "x")});
  for (; now_ns < 100'000'000; now_ns += 100'000) CHECK(receive(bob).empty());
  CHECK(bob.storm(now_ns, false, false));
  now_ns += 10'000;
  CHECK(receive(bob) == Texts{"x"});
}

TEST_CASE_METHOD(rocemu::dpdk_io::Network, "a switch without a network knows of no pauses") {
  CHECK(!bob.storm(now_ns, true, true));
  send(alice, {frame(kBob, "x")});
  CHECK(receive(bob) == Texts{"x"});
}

TEST_CASE("a network has no more ports than hosts") {
  need_eal();
  FramePool pool("hosts", 64, 256);
  Switch fabric(pool, 32);
  fabric.set_network(network::pair(kLink), {}, 0);
  fabric.add_port(kAlice, "alice");
  fabric.add_port(kBob, "bob");
  CHECK_THROWS_WITH(fabric.add_port(kCarol, "carol"), "port carol: the network has 2 hosts");
}

}  // namespace rocemu::dpdk_io
