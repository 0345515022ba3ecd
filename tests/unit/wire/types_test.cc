// PSN arithmetic modulo 2^24 and GIDs.
#include "emulator/wire/types.h"

#include <catch2/catch.hpp>
#include <unordered_set>

namespace rocemu::wire {
namespace {

constexpr uint32_t kHalf = 1u << 23;

TEST_CASE("A PSN keeps 24 bits") {
  CHECK(Psn(0xff123456).value() == 0x123456);
  CHECK(Psn().value() == 0);
}

TEST_CASE("PSNs count on through the wrap") {
  CHECK(Psn(0xffffff) + 1 == Psn(0));
  CHECK(Psn(0xfffffe) + 5 == Psn(3));
  CHECK(Psn(0) - 1 == Psn(0xffffff));
  CHECK(Psn(2) - 5 == Psn(0xfffffd));
  Psn psn(0xffffff);
  CHECK(++psn == Psn(0));
  CHECK(psn == Psn(0));
}

TEST_CASE("PSNs are compared modulo 2^24") {
  CHECK(Psn(0).after(Psn(0xffffff)));
  CHECK(Psn(0xffffff).before(Psn(0)));
  CHECK(Psn(3).distance_from(Psn(0xfffffe)) == 5);
  CHECK(Psn(0xfffffe).distance_from(Psn(3)) == -5);
  CHECK_FALSE(Psn(7).before(Psn(7)));
  CHECK_FALSE(Psn(7).after(Psn(7)));
}

TEST_CASE("The distance of two PSNs reaches from -2^23 to 2^23 - 1, wherever they lie") {
  const uint32_t base = GENERATE(0u, 1u, 0x7fffffu, 0x800000u, 0xffffffu, 0x123456u);
  const Psn psn(base);
  CHECK((psn + (kHalf - 1)).distance_from(psn) == static_cast<int32_t>(kHalf) - 1);
  CHECK((psn + (kHalf - 1)).after(psn));
  CHECK((psn + kHalf).distance_from(psn) == -static_cast<int32_t>(kHalf));
  CHECK((psn + kHalf).before(psn));
  CHECK((psn + (kHalf + 1)).distance_from(psn) == -static_cast<int32_t>(kHalf) + 1);
  CHECK((psn - 1).distance_from(psn) == -1);
  CHECK((psn + (1u << 24)) == psn);
}

TEST_CASE("An IPv4 address is a GID with its mapped prefix, and nothing else is") {
  const Gid mapped{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}};
  CHECK(mapped.is_ipv4_mapped());
  CHECK(mapped.ipv4() == Ipv4Address{192, 0, 2, 1});
  for (size_t i = 0; i < 12; ++i) {
    Gid other = mapped;
    other.bytes[i] ^= 1;
    CHECK_FALSE(other.is_ipv4_mapped());
  }
}

TEST_CASE("GIDs can be keys of a hash table") {
  std::unordered_set<Gid> gids;
  for (unsigned i = 0; i < 16; ++i) {
    Gid gid;
    gid.bytes[i] = 1;
    CHECK(gids.insert(gid).second);
    CHECK_FALSE(gids.insert(gid).second);
  }
  CHECK(gids.size() == 16);
}

}  // namespace
}  // namespace rocemu::wire
