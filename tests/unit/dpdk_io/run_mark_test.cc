// Runs: the switch carries them only as long as nobody sees what it carries, and counts their
// packets.
#include "dpdk_io/port/run_mark.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <span>

#include "dpdk_io/port/owed_icrc.h"
#include "dpdk_io/port/pcap.h"
#include "impairment/grammar.h"
#include "tests/unit/dpdk_io/network.h"
#include "tests/unit/dpdk_io/pcap_file.h"

namespace rocemu::dpdk_io {
namespace {

using impairment::Direction;

struct RunNetwork : Network {
  RunNetwork() {
    fabric.let_icrc_wait([](std::span<std::byte>) {});
    fabric.let_runs_pass(pool);
  }

  // Three packets that would take 500 bytes.
  rte_mbuf* run(const std::string& text) {
    rte_mbuf* const result = frame(kBob, text);
    mark_run(result, {3, 100, 500});
    return result;
  }
};

}  // namespace

TEST_CASE_METHOD(RunNetwork, "a run between two ports counts as its packets") {
  CHECK(alice.run_pool() == &pool);
  rte_mbuf* const single = frame(kBob, "one");
  const uint64_t single_bytes = single->pkt_len;
  send(alice, {run("run"), single});
  std::array<rte_mbuf*, 4> burst;
  REQUIRE(bob.receive(now_ns, burst) == 2);
  CHECK(is_run(burst[0]));
  CHECK(segment_bytes(burst[0]) == 100);
  CHECK_FALSE(is_run(burst[1]));
  FramePool::free_bulk(std::span(burst).first(2));
  CHECK(alice.stats().tx_frames == 4);
  CHECK(alice.stats().tx_bytes == 500 + single_bytes);
  CHECK(bob.stats().rx_frames == 4);
  CHECK(bob.stats().rx_bytes == 500 + single_bytes);
  // The buffers are used again, and are no runs.
  std::array<rte_mbuf*, kFrames> all;
  REQUIRE(pool.allocate_bulk(all) == kFrames);
  CHECK(std::ranges::none_of(all, is_run));
  FramePool::free_bulk(all);
}

TEST_CASE_METHOD(RunNetwork, "a burst has room for so many packets") {
  send(alice, {run("run"), frame(kBob, "one"), run("another run"), frame(kBob, "two")});
  std::array<rte_mbuf*, 4> burst;
  REQUIRE(bob.receive(now_ns, std::span(burst).first(2)) == 1);
  FramePool::free_bulk(std::span(burst).first(1));
  REQUIRE(bob.receive(now_ns, burst) == 2);
  FramePool::free_bulk(std::span(burst).first(2));
  CHECK(receive(bob) == Texts{"two"});
}

TEST_CASE_METHOD(Network, "without leave no run passes") { CHECK(alice.run_pool() == nullptr); }

TEST_CASE_METHOD(RunNetwork, "no run is recorded, and none passes meanwhile") {
  const TemporaryCapture file;
  PcapWriter writer(file.path());
  fabric.hold(now_ns);
  send(alice, {run("run"), frame(kBob, "one")});
  fabric.set_capture(&writer, [] { return uint64_t{0}; });
  CHECK(alice.run_pool() == nullptr);
  fabric.carry_held(now_ns);
  fabric.set_capture(nullptr, {});
  CHECK(alice.run_pool() == &pool);
  writer.flush();
  CHECK(read_pcap(file.path()).frames.size() == 1);
  CHECK(receive(bob) == Texts{"one"});
  CHECK(alice.stats().dropped(DropReason::malformed) == 3);
}

TEST_CASE_METHOD(RunNetwork, "no run crosses a link with impairments") {
  fabric.hold(now_ns);
  send(alice, {run("run"), frame(kBob, "one")});
  alice.set_link(Direction::transmit, *impairment::parse_spec("delay=1us").spec);
  CHECK(alice.run_pool() == nullptr);
  CHECK(bob.run_pool() == nullptr);
  fabric.carry_held(now_ns);
  now_ns += 1000;
  CHECK(receive(bob) == Texts{"one"});
  alice.set_link(Direction::transmit, {});
  CHECK(alice.run_pool() == &pool);
}

TEST_CASE_METHOD(RunNetwork, "who wants single frames gets no run") {
  send(alice, {run("run"), frame(kBob, "one")});
  bob.want_single_frames(true);
  bob.want_single_frames(true);
  CHECK(alice.run_pool() == nullptr);
  CHECK(receive(bob) == Texts{"one"});
  CHECK(bob.stats().dropped(DropReason::malformed) == 3);
  bob.want_single_frames(false);
  CHECK(alice.run_pool() == nullptr);
  bob.want_single_frames(false);
  CHECK(alice.run_pool() == &pool);
  send(alice, {run("run")});
  CHECK(receive(bob) == Texts{"run"});
}

}  // namespace rocemu::dpdk_io
