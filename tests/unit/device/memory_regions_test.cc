#include "emulator/device/memory/memory_regions.h"

#include <catch2/catch.hpp>
#include <set>

using namespace rocemu;
using device::MemoryRegion;
using device::MemoryRegions;

namespace {

MemoryRegion region_of(dma::AddressSpace& space) {
  MemoryRegion region;
  region.pd = 7;
  region.access = transport::kLocalWrite | transport::kRemoteRead;
  region.iova = 0x5000;
  region.length_bytes = 0x1000;
  region.address = 0x900000;
  region.space = &space;
  return region;
}

}  // namespace

TEST_CASE("A key grants its range, within its domain, with its rights, and nothing else") {
  std::byte memory[16];
  const auto space = dma::AddressSpace::local(memory, 0x1000);
  MemoryRegions regions(10);
  const uint32_t key = regions.add(region_of(*space)).value();
  transport::MemoryRange range;

  CHECK(regions.check(7, wire::Qpn{}, key, 0x5000, 0x1000, transport::kRemoteRead, range));
  CHECK(range.address == 0x900000);
  CHECK(range.space == space.get());
  CHECK(regions.check(7, wire::Qpn{}, key, 0x5fff, 1, transport::kLocalWrite, range));
  CHECK(range.address == 0x900fff);

  CHECK_FALSE(regions.check(7, wire::Qpn{}, key, 0x5fff, 2, 0, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, key, 0x4fff, 1, 0, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, key, 0x6000, 1, 0, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, key, ~uint64_t{0}, 0xffffffff, 0, range));
  CHECK_FALSE(regions.check(8, wire::Qpn{}, key, 0x5000, 1, 0, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, key, 0x5000, 1, transport::kRemoteWrite, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, key + 1, 0x5000, 1, 0, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, 0xffffffff, 0x5000, 1, 0, range));
  CHECK_FALSE(regions.check(7, wire::Qpn{}, 0, 0x5000, 1, 0, range));
}

TEST_CASE("A removed key grants nothing, and is not given again at once") {
  std::byte memory[16];
  const auto space = dma::AddressSpace::local(memory, 0x1000);
  MemoryRegions regions(4);
  std::set<uint32_t> seen;
  for (int i = 0; i < 200; ++i) {
    const uint32_t key = regions.add(region_of(*space)).value();
    CHECK(key != 0);
    CHECK(seen.insert(key).second);
    regions.remove(key);
    transport::MemoryRange range;
    CHECK_FALSE(regions.check(7, wire::Qpn{}, key, 0x5000, 1, 0, range));
  }
  CHECK(regions.size() == 0);
}

TEST_CASE("The table is full at its limit and not before") {
  std::byte memory[16];
  const auto space = dma::AddressSpace::local(memory, 0x1000);
  MemoryRegions regions(3);
  const uint32_t first = regions.add(region_of(*space)).value();
  CHECK(regions.add(region_of(*space)));
  CHECK(regions.add(region_of(*space)));
  CHECK_FALSE(regions.add(region_of(*space)));
  regions.remove(first);
  CHECK(regions.add(region_of(*space)));
}
