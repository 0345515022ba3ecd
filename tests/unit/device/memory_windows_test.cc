// What memory windows grant, and when they may be bound and invalidated.
#include <catch2/catch.hpp>

#include "emulator/device/memory/memory_regions.h"

using namespace rocemu;
using device::MemoryRegion;
using device::MemoryRegions;
using device::WindowType;
using transport::WindowBinding;

namespace {

constexpr transport::PdHandle kPd = 7;
constexpr wire::Qpn kQpn{0x11};
constexpr wire::Qpn kOtherQpn{0x12};

struct Table {
  std::byte memory[64];
  std::unique_ptr<dma::AddressSpace> space = dma::AddressSpace::local(memory, 0x900000);
  MemoryRegions regions{10};
  uint32_t region = 0;

  explicit Table(uint32_t access = transport::kLocalWrite | device::kWindowBind) {
    MemoryRegion entry;
    entry.pd = kPd;
    entry.access = access | device::kUseAsLkey | device::kUseAsRkey;
    entry.iova = 0x5000;
    entry.length_bytes = 0x1000;
    entry.address = 0x900000;
    entry.space = space.get();
    region = regions.add(entry).value();
  }
  WindowBinding binding(uint32_t window, uint64_t address = 0x5100, uint64_t length = 0x100,
                        uint32_t access = transport::kRemoteWrite) const {
    return {wire::RKey{window}, wire::LKey{region}, address, length, access};
  }
  bool writable(uint32_t key, uint64_t address, uint32_t length, wire::Qpn qpn = kQpn) {
    return regions.check(kPd, qpn, key, address, length,
                         transport::kRemoteWrite | device::kUseAsRkey, range);
  }
  transport::MemoryRange range;
};

uint32_t next_key(uint32_t key) { return (key & ~0xffu) | ((key + 1) & 0xff); }

}  // namespace

TEST_CASE("A window grants nothing until it is bound, and then its range alone") {
  Table table;
  const WindowType type = GENERATE(WindowType::type_1, WindowType::type_2);
  const uint32_t first = table.regions.add_window(kPd, type).value();
  CHECK_FALSE(table.writable(first, 0x5100, 1));

  const uint32_t key = next_key(first);
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(key)));
  CHECK(table.writable(key, 0x5100, 0x100));
  CHECK(table.range.address == 0x900100);
  CHECK_FALSE(table.writable(key, 0x50ff, 1));
  CHECK_FALSE(table.writable(key, 0x5200, 1));
  CHECK_FALSE(table.writable(first, 0x5100, 1));
  CHECK_FALSE(table.regions.check(kPd, kQpn, key, 0x5100, 1,
                                  transport::kRemoteRead | device::kUseAsRkey, table.range));
  CHECK_FALSE(table.regions.check(kPd, kQpn, key, 0x5100, 1, device::kUseAsLkey, table.range));
  CHECK_FALSE(table.regions.check(kPd + 1, kQpn, key, 0x5100, 1,
                                  transport::kRemoteWrite | device::kUseAsRkey, table.range));
  // Of type 2: for the QP that bound it.
  CHECK(table.writable(key, 0x5100, 1, kOtherQpn) == (type == WindowType::type_1));
}

TEST_CASE("Bindings that are refused change nothing") {
  Table table;
  const uint32_t first = table.regions.add_window(kPd, WindowType::type_2).value();
  const uint32_t key = next_key(first);
  WindowBinding wrong = table.binding(key);

  SECTION("to a key that is not a window's") { wrong.window = wire::RKey{table.region}; }
  SECTION("to a key beyond the table") { wrong.window = wire::RKey{0xffffff00}; }
  SECTION("to no region") { wrong.region = wire::LKey{table.region + 1}; }
  SECTION("to a window") { wrong.region = wire::LKey{first}; }
  SECTION("before the region") { wrong.address = 0x4fff; }
  SECTION("beyond the region") { wrong.length_bytes = 0xf01; }
  SECTION("with a length that wraps round") { wrong.length_bytes = ~uint64_t{0}; }
  SECTION("without a length, of type 2") { wrong.length_bytes = 0; }
  SECTION("with flags that windows do not have") { wrong.access = ~0u; }
  CHECK_FALSE(table.regions.bind(kPd, kQpn, wrong));
  CHECK_FALSE(table.regions.bind(kPd + 1, kQpn, table.binding(key)));
  CHECK(table.regions.find_region(table.region)->windows == 0);
  CHECK(table.regions.bind(kPd, kQpn, table.binding(key)));
}

TEST_CASE("A window that is not bound may be bound under the key it has") {
  Table table;
  const WindowType type = GENERATE(WindowType::type_1, WindowType::type_2);
  const uint32_t first = table.regions.add_window(kPd, type).value();
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(first)));
  CHECK(table.writable(first, 0x5100, 0x100));
}

TEST_CASE("What the region was not registered for a window does not grant") {
  SECTION("windows at all") {
    Table table(transport::kLocalWrite);
    const uint32_t key = table.regions.add_window(kPd, WindowType::type_1).value();
    CHECK_FALSE(table.regions.bind(kPd, kQpn, table.binding(next_key(key))));
  }
  SECTION("writing") {
    Table table(device::kWindowBind);
    const uint32_t key = table.regions.add_window(kPd, WindowType::type_1).value();
    CHECK_FALSE(table.regions.bind(kPd, kQpn, table.binding(next_key(key))));
    CHECK(table.regions.bind(kPd, kQpn,
                             table.binding(next_key(key), 0x5000, 1, transport::kRemoteRead)));
  }
}

TEST_CASE("A window of type 1 is bound anew at any time, and unbound by no length") {
  Table table;
  const uint32_t first = table.regions.add_window(kPd, WindowType::type_1).value();
  const uint32_t second = next_key(first);
  const uint32_t third = next_key(second);
  const uint32_t fourth = next_key(third);
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(second)));
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(third, 0x5800)));
  CHECK_FALSE(table.writable(second, 0x5100, 1));
  CHECK(table.writable(third, 0x5800, 1));
  CHECK(table.regions.find_region(table.region)->windows == 1);
  CHECK_FALSE(table.regions.invalidate(kPd, kQpn, third));
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(fourth, 0, 0)));
  CHECK_FALSE(table.writable(fourth, 0x5800, 1));
  CHECK(table.regions.find_region(table.region)->windows == 0);
}

TEST_CASE("A window of type 2 is invalidated by its QP, and only then bound again") {
  Table table;
  const uint32_t key = next_key(table.regions.add_window(kPd, WindowType::type_2).value());
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(key)));
  CHECK_FALSE(table.regions.bind(kPd, kQpn, table.binding(next_key(key))));
  CHECK_FALSE(table.regions.invalidate(kPd, kOtherQpn, key));
  CHECK_FALSE(table.regions.invalidate(kPd + 1, kQpn, key));
  CHECK_FALSE(table.regions.invalidate(kPd, kQpn, table.region));
  CHECK(table.writable(key, 0x5100, 1));
  REQUIRE(table.regions.invalidate(kPd, kQpn, key));
  CHECK_FALSE(table.writable(key, 0x5100, 1));
  CHECK_FALSE(table.regions.invalidate(kPd, kQpn, key));
  CHECK(table.regions.bind(kPd, kQpn, table.binding(next_key(key))));
}

TEST_CASE("A zero-based window of type 2 is addressed from 0 on") {
  Table table;
  const uint32_t key = next_key(table.regions.add_window(kPd, WindowType::type_2).value());
  REQUIRE(table.regions.bind(
      kPd, kQpn, table.binding(key, 0x5100, 0x100, transport::kRemoteWrite | device::kZeroBased)));
  CHECK(table.writable(key, 0, 0x100));
  CHECK(table.range.address == 0x900100);
  CHECK_FALSE(table.writable(key, 0x5100, 1));
}

TEST_CASE("Windows and regions go one without the other") {
  Table table;
  const uint32_t key = next_key(table.regions.add_window(kPd, WindowType::type_2).value());
  REQUIRE(table.regions.bind(kPd, kQpn, table.binding(key)));
  SECTION("the window first") {
    table.regions.remove(key);
    CHECK(table.regions.find_region(table.region)->windows == 0);
  }
  SECTION("the region first") { table.regions.remove(table.region); }
  SECTION("the region first, and another one comes in its place, under the same key in the end") {
    uint32_t again = 0;
    table.regions.remove(table.region);
    for (int i = 0; again != table.region && i < 100000; ++i) {
      MemoryRegion entry;
      entry.pd = kPd;
      entry.access = ~0u;
      entry.length_bytes = ~uint64_t{0};
      entry.space = table.space.get();
      again = table.regions.add(entry).value();
      if (again != table.region) table.regions.remove(again);
    }
    REQUIRE(again == table.region);
    CHECK(table.regions.find_region(again)->windows == 0);
    CHECK_FALSE(table.regions.invalidate(kPd, kQpn, key));
  }
  CHECK_FALSE(table.writable(key, 0x5100, 1));
}
