// Frames that owe their ICRC: the switch takes them only as long as nobody sees or changes what it
// carries, and pays for those that are under way when that ends.
#include "dpdk_io/port/owed_icrc.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <string>

#include "base/time.h"
#include "dpdk_io/port/pcap.h"
#include "dpdk_io/switch/switch.h"
#include "impairment/grammar.h"
#include "network/topology/kinds.h"
#include "tests/unit/dpdk_io/network.h"
#include "tests/unit/dpdk_io/pcap_file.h"

namespace rocemu::dpdk_io {
namespace {

using impairment::Direction;

// Stands for the CRC.
void store_mark(std::span<std::byte> l3) { std::ranges::fill(l3.last(4), std::byte{'+'}); }

struct OwingNetwork : Network {
  OwingNetwork() { fabric.let_icrc_wait(store_mark); }

  rte_mbuf* owing(const std::string& text) {
    rte_mbuf* const result = frame(kBob, text + "----");
    owe_icrc(result, kAddressesBytes);
    return result;
  }
  void impair(const impairment::Spec& spec) { alice.set_link(Direction::transmit, spec); }
};

}  // namespace

TEST_CASE_METHOD(OwingNetwork, "a frame between two ports keeps owing its ICRC") {
  CHECK(alice.takes_owed_icrc());
  send(alice, {owing("one"), frame(kBob, "two")});
  std::array<rte_mbuf*, 2> burst;
  REQUIRE(bob.receive(now_ns, burst) == 2);
  CHECK(owes_icrc(burst[0]));
  CHECK_FALSE(owes_icrc(burst[1]));
  pay_icrc(burst[0], store_mark);
  CHECK_FALSE(owes_icrc(burst[0]));
  FramePool::free_bulk(burst);
  // The buffers are used again, and owe nothing.
  std::array<rte_mbuf*, kFrames> all;
  REQUIRE(pool.allocate_bulk(all) == kFrames);
  CHECK(std::ranges::none_of(all, owes_icrc));
  FramePool::free_bulk(all);
}

TEST_CASE_METHOD(Network, "without leave to wait an ICRC is never owed") {
  CHECK_FALSE(alice.takes_owed_icrc());
}

TEST_CASE_METHOD(OwingNetwork, "what is recorded has its ICRC, and nothing is owed meanwhile") {
  const TemporaryCapture file;
  PcapWriter writer(file.path());
  fabric.hold(now_ns);
  send(alice, {owing("under way")});
  fabric.set_capture(&writer, [] { return uint64_t{0}; });
  CHECK_FALSE(alice.takes_owed_icrc());
  fabric.carry_held(now_ns);
  fabric.set_capture(nullptr, {});
  CHECK(alice.takes_owed_icrc());
  writer.flush();
  CHECK(read_pcap(file.path()).frames.at(0).bytes.ends_with("under way++++"));
  CHECK(receive(bob) == Texts{"under way++++"});
}

TEST_CASE_METHOD(OwingNetwork, "what crosses a link with impairments has its ICRC") {
  fabric.hold(now_ns);
  send(alice, {owing("under way")});
  impair(*impairment::parse_spec("delay=1us").spec);
  CHECK_FALSE(alice.takes_owed_icrc());
  CHECK_FALSE(bob.takes_owed_icrc());
  fabric.carry_held(now_ns);
  now_ns += 1000;
  CHECK(receive(bob) == Texts{"under way++++"});
  impair({});
  CHECK(alice.takes_owed_icrc());
}

TEST_CASE("in a network of switches no ICRC is owed") {
  NetworkOf network([](Switch& fabric) {
    fabric.let_icrc_wait(store_mark);
    fabric.set_network(network::star(3, {}), {}, 0);
  });
  CHECK_FALSE(network.alice.takes_owed_icrc());
}

}  // namespace rocemu::dpdk_io
