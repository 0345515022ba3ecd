#include "emulator/transport/identification_history.h"

#include <catch2/catch.hpp>
#include <vector>

#include "base/byte_order.h"
#include "tests/unit/time_units.h"

namespace rocemu::transport {
namespace {

constexpr wire::Gid kSource{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7}};
constexpr size_t kPayload = 40;  // behind IP, UDP and BTH

// A datagram made with `identification`, without it.
std::vector<std::byte> datagram(uint16_t identification) {
  std::vector<std::byte> l3(1068);
  for (size_t i = 0; i < l3.size(); ++i) l3[i] = static_cast<std::byte>(i * 7 + 3);
  l3[0] = std::byte{0x45};
  store_be16(&l3[4], identification);
  wire::store_icrc(l3);
  store_be16(&l3[4], 0);
  return l3;
}

// One that the identification 30492 would make right.
std::vector<std::byte> changed() {
  auto l3 = datagram(0);
  l3[kPayload + 81] ^= std::byte{15};
  return l3;
}

struct Receiving {
  bool take(const std::vector<std::byte>& l3) {
    now += kUs;
    return history.is_right(now, kSource, l3);
  }
  IdentificationHistory history;
  TimeNs now = 0;
};

}  // namespace

TEST_CASE_METHOD(Receiving, "A changed datagram of a sender that does not count is wrong") {
  REQUIRE(wire::identification_by_icrc(changed()) == 30492);
  CHECK(take(datagram(0)));
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(take(changed()));
    CHECK(take(datagram(0)));
    now += 1'000'000 * kUs;
  }
}

TEST_CASE_METHOD(Receiving, "A sender that counts is understood") {
  for (const uint16_t identification : {65000, 65010, 65009, 3, 900})
    CHECK(take(datagram(identification)));
  CHECK_FALSE(take(changed()));
  CHECK_FALSE(take(datagram(901)));
  CHECK(take(datagram(902)));
  now += 200'000 * kUs;
  CHECK(take(datagram(20'000)));
}

TEST_CASE_METHOD(Receiving,
                 "A sender that begins to count is understood with its second datagram") {
  CHECK(take(datagram(0)));
  CHECK_FALSE(take(datagram(4000)));
  CHECK(take(datagram(4001)));
  CHECK(take(datagram(4002)));
}

}  // namespace rocemu::transport
