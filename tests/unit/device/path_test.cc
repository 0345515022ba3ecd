#include "emulator/device/attributes/path.h"

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "emulator/wire/build.h"
#include "emulator/wire/packet.h"

using namespace rocemu;

namespace {

class OnePeer final : public device::AddressResolver {
 public:
  explicit OnePeer(const device::PortConfig& peer) : peer_(peer) {}
  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override {
    for (const auto& entry : peer_.gids) {
      if (entry.gid != gid) continue;
      mac = peer_.mac;
      return true;
    }
    return false;
  }

 private:
  const device::PortConfig& peer_;
};

}  // namespace

TEST_CASE("The UDP source port is the one that Linux takes") {
  // tests/data/rxe-pcaps: QPs 0x11 on both ends talk from port 49441.
  CHECK(device::udp_source_port(0, wire::Qpn{0x11}, wire::Qpn{0x11}) == 49441);
  CHECK(device::udp_source_port(0, wire::Qpn{0xabcdef}, wire::Qpn{0x123456}) ==
        device::udp_source_port(0, wire::Qpn{0x123456}, wire::Qpn{0xabcdef}));
  CHECK(device::udp_source_port(0xfffff, wire::Qpn{1}, wire::Qpn{2}) >= 0xc000);
}

TEST_CASE("A path needs a global address of one IP version that somebody has") {
  const auto here = device::default_config(0).port;
  const auto there = device::default_config(1).port;
  OnePeer resolver(there);
  device::AhAttr ah;
  ah.is_global = true;
  ah.port_num = 1;
  const wire::Qpn qpn{17};

  for (uint8_t index : {0, 1, 2}) {
    ah.sgid_index = index;
    ah.dgid = there.gids[index].gid;
    const auto path = device::make_path(here, ah, qpn, qpn, resolver);
    REQUIRE(path);
    CHECK(path->local_gid == here.gids[index].gid);
    CHECK(path->remote_gid == ah.dgid);
  }

  const auto headers_with = [&](uint32_t flow_label) {
    ah.flow_label = flow_label;
    const auto path = device::make_path(here, ah, qpn, qpn, resolver);
    REQUIRE(path);
    std::array<std::byte, wire::HeaderTemplate::kMaxBytes + 16> frame{};
    path->headers.write(frame.data(), 16);
    return frame;
  };
  CHECK(headers_with(0xffffffff) == headers_with(0xfffff));  // as UCX sets it; 20 bits are sent
  ah.flow_label = 0;

  ah.sgid_index = 1;
  ah.dgid = there.gids[0].gid;  // from IPv4 to IPv6
  CHECK(device::make_path(here, ah, qpn, qpn, resolver).error() == EINVAL);
  ah.sgid_index = 3;
  CHECK(device::make_path(here, ah, qpn, qpn, resolver).error() == EINVAL);
  ah.sgid_index = 0;
  ah.dgid.bytes[15] ^= 1;
  CHECK(device::make_path(here, ah, qpn, qpn, resolver).error() == EHOSTUNREACH);
  ah.dgid = there.gids[0].gid;
  ah.is_global = false;
  CHECK(device::make_path(here, ah, qpn, qpn, resolver).error() == EINVAL);
}
