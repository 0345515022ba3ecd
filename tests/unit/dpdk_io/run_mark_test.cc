// Runs: the switch carries them only as long as nobody sees what it carries, and counts their
// packets.
#include "dpdk_io/port/run_mark.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <span>

#include "dpdk_io/port/lent_payload.h"
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

namespace {

bool gone = false;  // what is lent

bool take(std::byte* to, const std::byte* lent, size_t length_bytes) noexcept {
  std::copy_n(lent, length_bytes, to);
  return !gone;
}

}  // namespace

TEST_CASE_METHOD(RunNetwork, "a run's payload is lent until the switch takes it") {
  CHECK_FALSE(alice.takes_lent());
  fabric.let_payload_be_lent(take);
  CHECK(alice.takes_lent());
  std::array<std::byte, 8> memory;
  memory.fill(std::byte{0x55});
  rte_mbuf* const lending = run("run with some room");
  constexpr uint32_t kOffsetBytes = 20;
  mark_lent(lending, {memory.data(), memory.size(), kOffsetBytes});
  send(alice, {frame(kBob, "one"), lending, frame(kBob, "two")});
  std::array<rte_mbuf*, 8> burst;
  SECTION("nobody takes it") {
    REQUIRE(bob.receive(now_ns, burst) == 3);
    REQUIRE(lent_payload(burst[1]) != nullptr);
    CHECK(lent_payload(burst[1])->bytes == memory.data());
    CHECK(lent_payload(burst[0]) == nullptr);
    FramePool::free_bulk(std::span(burst).first(3));
  }
  SECTION("it is taken") {
    fabric.take_lent();
    memory.fill(std::byte{0x66});
    REQUIRE(bob.receive(now_ns, burst) == 3);
    CHECK(lent_payload(burst[1]) == nullptr);
    CHECK(is_run(burst[1]));
    const std::byte* const bytes = MbufFrames::bytes(burst[1]) + kOffsetBytes;
    CHECK(std::all_of(bytes, bytes + memory.size(),
                      [](std::byte b) { return b == std::byte{0x55}; }));
    FramePool::free_bulk(std::span(burst).first(3));
  }
  SECTION("it has gone") {
    gone = true;
    fabric.take_lent();
    gone = false;
    REQUIRE(bob.receive(now_ns, burst) == 2);
    CHECK_FALSE(is_run(burst[1]));
    CHECK(bob.stats().dropped(DropReason::malformed) == 3);
    FramePool::free_bulk(std::span(burst).first(2));
  }
}

}  // namespace rocemu::dpdk_io
