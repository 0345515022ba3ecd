#include "network/mac_table.h"

#include <catch2/catch.hpp>
#include <vector>

#include "network/mac.h"

namespace rocemu::network {

TEST_CASE("a MAC as a number has its first byte lowest, and is read from where a frame has it") {
  CHECK(mac_number({0x02, 0, 0, 0, 0, 0x0a}) == 0x0a00'0000'0002);
  CHECK((mac_number({0x33, 0x33, 0, 0, 0, 1}) & kGroupBit) != 0);
  std::vector<std::byte> frame(kEthernetHeaderBytes);
  for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(i + 1);
  CHECK(destination_mac(frame.data()) == 0x0605'0403'0201);
  CHECK(source_mac(frame.data()) == 0x0c0b'0a09'0807);
}

TEST_CASE("thousands of MACs are found, and no other") {
  constexpr uint64_t kCount = 5000;
  MacTable<uint64_t> table;
  std::vector<uint64_t> ports(kCount);
  CHECK(table.find(0) == nullptr);
  for (uint64_t i = 0; i < kCount; ++i) table.set(i << 24 | 2, ports[i]);
  CHECK(table.size() == kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    CHECK(table.find(i << 24 | 2) == &ports[i]);
    CHECK(table.find(i << 24 | 4) == nullptr);
  }
}

TEST_CASE("a MAC that was asked for before it was known, or has moved, is found where it is now") {
  int here = 0;
  int there = 0;
  MacTable<int> table;
  CHECK(table.find(7) == nullptr);
  table.set(7, here);
  CHECK(table.find(7) == &here);
  table.set(7, there);
  CHECK(table.find(7) == &there);
  CHECK(table.size() == 1);
  CHECK(table.contains(7));
  CHECK_FALSE(table.contains(8));
}

}  // namespace rocemu::network
