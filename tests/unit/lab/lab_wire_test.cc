#include "emulator/lab/lab_wire.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/time.h"
#include "network/topology/kinds.h"

namespace rocemu::lab {
namespace {

// Three hosts; a frame is told by its fifteenth byte.
struct Wire {
  void send(unsigned from, unsigned char to_mac, char what) {
    std::vector<std::byte> frame(60);
    frame[0] = std::byte{to_mac == 0xff ? uint8_t{0xff} : uint8_t{2}};
    frame[5] = std::byte{to_mac};
    frame[6] = std::byte{2};
    frame[11] = static_cast<std::byte>(from);
    frame[14] = static_cast<std::byte>(what);
    wire.on_frame(now_ns, from, frame);
  }
  void impair(const std::string& text) {
    const auto parsed = impairment::parse_assignment(text);
    REQUIRE(parsed.assignment);
    REQUIRE(wire.impair(*parsed.assignment));
  }
  std::vector<std::string> take() {
    std::vector<std::string> taken(3);
    taken.swap(arrived);
    return taken;
  }

  uint64_t now_ns = 1000;
  std::vector<std::string> arrived = std::vector<std::string>(3);
  LabWire wire{3, [this](unsigned host, std::span<const std::byte> frame) {
                 arrived[host] += static_cast<char>(frame[14]);
               }};
};

using Arrived = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Wire, "frames go to all until it is known who is where") {
  send(0, 1, 'a');
  CHECK(take() == Arrived{"", "a", "a"});
  send(1, 0, 'b');
  send(0, 1, 'c');
  CHECK(take() == Arrived{"b", "c", ""});
  send(0, 0xff, 'd');
  CHECK(take() == Arrived{"", "d", "d"});
  send(0, 0, 'e');  // to itself
  CHECK(take() == Arrived{"", "", ""});
  CHECK(wire.next_arrival_ns() == kNever);
}

TEST_CASE_METHOD(Wire, "each direction of each host's link has its own impairments") {
  impair("h1:delay=20us");
  impair("h2.rx:delay=5us");
  impair("h3.rx:loss=100%");
  send(0, 0xff, 'a');
  CHECK(take() == Arrived{"", "", ""});
  CHECK(wire.next_arrival_ns() == 21'000);
  wire.advance(21'000);
  CHECK(wire.next_arrival_ns() == 26'000);
  wire.advance(26'000);
  CHECK(take() == Arrived{"", "a", ""});
  now_ns = 30'000;
  send(1, 0, 'b');  // back without delay
  CHECK(take() == Arrived{"b", "", ""});
}

TEST_CASE_METHOD(Wire, "what is under way is bounded, and runts are dropped") {
  impair("delay=1s");
  for (size_t i = 0; i < LabWire::kMaxUnderWay + 10; ++i) send(0, 1, 'x');
  wire.advance(now_ns + 1'000'000'000);
  CHECK(arrived[1].size() == LabWire::kMaxUnderWay);
  take();
  wire.on_frame(now_ns, 0, std::vector<std::byte>(13));
  CHECK(take() == Arrived{"", "", ""});
}

TEST_CASE_METHOD(Wire,
                 "hosts of a network: frames cross its links, and then those with impairments") {
  network::Description description{
      network::star(3, {.rate_bits_per_s = 8'000'000'000, .delay_ns = 1000}), {}};
  REQUIRE(wire.set_network(description, now_ns));
  impair("h2.rx:delay=5us");
  send(0, 1, 'a');
  CHECK(wire.next_arrival_ns() == 1000 + 60);
  wire.advance(1000 + 2119);
  CHECK(take() == Arrived{"", "", ""});
  wire.advance(1000 + 2120);
  CHECK(take() == Arrived{"", "", "a"});  // flooded: nobody has sent from that MAC yet
  wire.advance(1000 + 7120);
  CHECK(take() == Arrived{"", "a", ""});
  now_ns = 20'000;
  send(1, 0, 'b');
  wire.advance(50'000);
  CHECK(take() == Arrived{"b", "", ""});
  CHECK(wire.next_arrival_ns() == kNever);
}

TEST_CASE_METHOD(Wire, "a network with fewer hosts is refused") {
  CHECK_FALSE(wire.set_network({network::pair({}), {}}, 0));
}

TEST_CASE_METHOD(Wire, "a host that is not there cannot be impaired") {
  CHECK_FALSE(wire.impair(*impairment::parse_assignment("h4:loss=1%").assignment));
}

}  // namespace rocemu::lab
