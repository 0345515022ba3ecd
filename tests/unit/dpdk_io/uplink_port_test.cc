#include "dpdk_io/port/uplink_port.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <utility>

#include "base/time.h"
#include "impairment/grammar.h"
#include "tests/unit/dpdk_io/network.h"

namespace rocemu::dpdk_io {
namespace {

using impairment::Direction;

// Takes what it is told to take, and gives what a test put in.
struct FakeWire final : Port {
  ~FakeWire() override {
    for (rte_mbuf* frame : sent) FramePool::free(frame);
  }
  unsigned receive(uint64_t, std::span<rte_mbuf*> burst) noexcept override {
    unsigned count = 0;
    for (; count < burst.size() && !coming.empty(); coming.pop_front())
      burst[count++] = coming.front();
    return count;
  }
  unsigned transmit(uint64_t, std::span<rte_mbuf*> burst) noexcept override {
    unsigned count = 0;
    for (; count < burst.size() && room > 0; --room) sent.push_back(burst[count++]);
    return count;
  }
  int poll_fd() const noexcept override { return -1; }
  bool has_work() const noexcept override { return false; }
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  const PortStats& stats() const noexcept override { return counted; }

  std::deque<rte_mbuf*> coming;
  std::vector<rte_mbuf*> sent;
  unsigned room = 1000;
  PortStats counted;
};

struct Uplink : Network {
  Uplink() { port.set_mac(kAlice); }

  void set(Direction direction, const std::string& text) {
    const impairment::ParsedSpec parsed = impairment::parse_spec(text);
    REQUIRE(parsed.error == "");
    port.set_link(direction, *parsed.spec);
  }
  Texts take_sent() {
    Texts texts;
    for (rte_mbuf* frame : std::exchange(wire.sent, {})) {
      texts.emplace_back(rte_pktmbuf_mtod_offset(frame, const char*, kAddressesBytes),
                         frame->data_len - kAddressesBytes);
      FramePool::free(frame);
    }
    return texts;
  }

  FakeWire& wire = *new FakeWire;
  UplinkPort port{std::unique_ptr<Port>(&wire), 0, pool};
};

}  // namespace

TEST_CASE_METHOD(Uplink, "frames to others leave, frames to oneself come back, in their order") {
  send(port, {frame(kBob, "1"), frame(kAlice, "own 1"), frame(kBob, "2"), frame(kAlice, "own 2")});
  CHECK(take_sent() == Texts{"1", "2"});
  CHECK(port.has_work());
  wire.coming.push_back(frame(kAlice, "from afar", kBob));
  CHECK(receive(port) == Texts{"own 1", "own 2", "from afar"});
  CHECK_FALSE(port.has_work());
}

TEST_CASE_METHOD(Uplink, "what the wire does not take stays with the sender") {
  wire.room = 2;
  std::vector<rte_mbuf*> frames = {frame(kBob, "1"), frame(kBob, "2"), frame(kBob, "3"),
                                   frame(kAlice, "own")};
  CHECK(port.transmit(now_ns, frames) == 2);
  CHECK(take_sent() == Texts{"1", "2"});
  CHECK(receive(port).empty());
  wire.room = 10;
  send(port, {frames.begin() + 2, frames.end()});
  CHECK(take_sent() == Texts{"3"});
  CHECK(receive(port) == Texts{"own"});
}

TEST_CASE_METHOD(Uplink, "while the link is down what is sent is lost, and counted") {
  port.set_running(false);
  wire.room = 0;
  send(port, {frame(kBob, "1"), frame(kAlice, "own"), frame(kBob, "2")});
  CHECK(take_sent().empty());
  CHECK(port.stats().dropped(DropReason::refused_by_kernel) == 2);
  CHECK(port.stats().tx_frames == 1);
  CHECK(receive(port) == Texts{"own"});
  port.set_running(true);
  wire.room = 10;
  send(port, {frame(kBob, "3")});
  CHECK(take_sent() == Texts{"3"});
}

TEST_CASE_METHOD(Uplink, "each direction of the link has its own impairments") {
  set(Direction::transmit, "delay=20us");
  set(Direction::receive, "loss=100%");
  send(port, {frame(kBob, "late")});
  CHECK(take_sent().empty());
  CHECK(port.next_arrival_ns() == 20'000);
  wire.coming.push_back(frame(kAlice, "lost", kBob));
  CHECK(receive(port).empty());
  CHECK(port.stats().dropped(DropReason::impairment_loss) == 1);
  CHECK(port.link(Direction::receive).stats.lost == 1);
  now_ns = 20'000;
  CHECK(receive(port).empty());
  CHECK(take_sent() == Texts{"late"});
  CHECK(port.next_arrival_ns() == kNever);

  set(Direction::receive, "none");
  set(Direction::transmit, "none");
  CHECK(port.link(Direction::transmit).spec == impairment::Spec{});
  wire.coming.push_back(frame(kAlice, "arrives", kBob));
  CHECK(receive(port) == Texts{"arrives"});
}

TEST_CASE_METHOD(Uplink, "frames to oneself cross both directions") {
  set(Direction::transmit, "delay=10us");
  set(Direction::receive, "delay=5us");
  send(port, {frame(kAlice, "own")});
  now_ns = 10'000;
  CHECK(receive(port).empty());
  CHECK(port.next_arrival_ns() == 15'000);
  now_ns = 15'000;
  CHECK(receive(port) == Texts{"own"});
}

}  // namespace rocemu::dpdk_io
