#include "network/forwarding.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "network/shared_frame.h"

namespace rocemu::network {
namespace {

struct Port {
  char name;
};

// Three ports; the MAC of port N is 02:...:N.
template <Macs kMacs>
struct Stage {
  Stage() {
    for (Port& port : ports) forwarding.add_port(port);
  }

  // The names of the ports that get a frame; `-` when it stays with the caller.
  std::string send(unsigned from, std::byte first, unsigned to) {
    std::vector<std::byte> bytes(60);
    bytes[0] = first;
    bytes[5] = static_cast<std::byte>(to);
    bytes[6] = std::byte{2};
    bytes[11] = static_cast<std::byte>(from);
    std::string reached;
    const bool known = forwarding.forward(ports[from], SharedFrame(bytes),
                                          [&](Port& port, const SharedFrame& frame) {
                                            CHECK(std::ranges::equal(frame.bytes(), bytes));
                                            reached += port.name;
                                          });
    return known ? reached : "-";
  }
  std::string unicast(unsigned from, unsigned to) { return send(from, std::byte{2}, to); }
  std::string multicast(unsigned from) { return send(from, std::byte{0x33}, 1); }

  Port ports[3] = {{'a'}, {'b'}, {'c'}};
  Forwarding<SharedFrames, Port, kMacs> forwarding;
};

}  // namespace

TEST_CASE("configured MACs: to the one that has it, the sender as well; else to nobody") {
  Stage<Macs::configured> stage;
  for (uint8_t i = 0; i < 3; ++i)
    stage.forwarding.add_mac(mac_number({2, 0, 0, 0, 0, i}), stage.ports[i]);
  CHECK(stage.unicast(0, 1) == "b");
  CHECK(stage.unicast(0, 0) == "a");
  CHECK(stage.unicast(0, 9) == "-");
  CHECK(stage.multicast(1) == "ac");
}

TEST_CASE("learned MACs: to all until somebody has sent from it, never back") {
  Stage<Macs::learned> stage;
  CHECK(stage.unicast(0, 1) == "bc");
  CHECK(stage.unicast(1, 0) == "a");
  CHECK(stage.unicast(0, 1) == "b");
  CHECK(stage.unicast(0, 0) == "-");
  CHECK(stage.multicast(2) == "ab");
}

TEST_CASE("a learning switch knows so many MACs and no more") {
  Stage<Macs::learned> stage;
  std::vector<std::byte> bytes(60);
  const auto send = [&](size_t source) {
    bytes[6] = std::byte{2};
    bytes[10] = static_cast<std::byte>(source >> 8);
    bytes[11] = static_cast<std::byte>(source);
    stage.forwarding.forward(stage.ports[0], SharedFrame(bytes), [](Port&, const SharedFrame&) {});
  };
  const auto mac = [](size_t source) {
    return mac_number(
        {2, 0, 0, 0, static_cast<uint8_t>(source >> 8), static_cast<uint8_t>(source)});
  };
  constexpr size_t kMax = decltype(stage.forwarding)::kMaxLearned;
  for (size_t i = 0; i <= kMax; ++i) send(i);
  CHECK(stage.forwarding.find(mac(kMax - 1)) == &stage.ports[0]);
  CHECK(stage.forwarding.find(mac(kMax)) == nullptr);
}

}  // namespace rocemu::network
