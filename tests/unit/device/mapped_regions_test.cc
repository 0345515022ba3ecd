// Regions that are mapped here beside those that are reached by the program's address space: order,
// failures, windows, and which registrations may be.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "emulator/device/hca.h"
#include "emulator/device/memory/hca_memory.h"
#include "emulator/dma/guarded_access.h"

using namespace rocemu;
using namespace rocemu::device;

namespace {

constexpr transport::PdHandle kPd = 3;
constexpr wire::Qpn kQpn{0x11};
constexpr uint64_t kPlain = 0x900000;
constexpr uint64_t kMapped = 0xa00000;
constexpr uint32_t kBytes = 4096;
constexpr uint32_t kAccess =
    transport::kLocalWrite | transport::kRemoteWrite | transport::kRemoteAtomic | kWindowBind;

using Tags = std::vector<uint32_t>;

// A file of a page with a mapping of it.
struct File {
  int fd = ::memfd_create("test", MFD_CLOEXEC);
  std::shared_ptr<const dma::MappedFile> mapped;
  File() {
    REQUIRE(::ftruncate(fd, kBytes) == 0);
    mapped = dma::MappedFile::map(fd, 0, kBytes);
    REQUIRE(mapped != nullptr);
    dma::install_access_guard();
  }
  ~File() { ::close(fd); }
  std::byte at(size_t offset) const { return mapped->bytes()[offset]; }
};

// One program's address space with a region of each kind.
struct Table {
  std::array<std::byte, kBytes> memory{};
  std::unique_ptr<dma::AddressSpace> space = dma::AddressSpace::local(memory, kPlain);
  File file;
  MemoryRegions regions{10};
  HcaMemory hca_memory{regions};
  uint32_t plain = add(kPlain, nullptr);
  uint32_t mapped = add(kMapped, file.mapped->bytes().data());

  uint32_t add(uint64_t address, std::byte* here) {
    MemoryRegion entry;
    entry.pd = kPd;
    entry.access = kAccess | kUseAsLkey | kUseAsRkey;
    entry.iova = entry.address = address;
    entry.length_bytes = kBytes;
    entry.space = space.get();
    entry.mapped = here;
    return regions.add(entry).value();
  }
  transport::MemoryRange range(uint32_t key, uint64_t address, uint32_t bytes = 8) {
    transport::MemoryRange result;
    REQUIRE(hca_memory.check_remote(kPd, kQpn, wire::RKey{key}, address, bytes,
                                    transport::kRemoteWrite, result));
    return result;
  }
  void scatter(uint32_t key, uint64_t address, const void* from, uint32_t tag) {
    hca_memory.scatter(range(key, address), static_cast<const std::byte*>(from), 8, tag);
  }
};

}  // namespace

TEST_CASE("What is written before is in place before mapped memory is written to") {
  Table table;
  const uint64_t data = 0x1111111111111111, flag = 1;
  table.scatter(table.plain, kPlain + 8, &data, 0);
  CHECK(table.memory[8] == std::byte{0});
  table.scatter(table.mapped, kMapped + 16, &flag, 1);
  CHECK(table.memory[8] == std::byte{0x11});
  CHECK(table.file.at(16) == std::byte{1});
  Tags failed;
  table.hca_memory.flush_scatters(failed);
  CHECK(failed.empty());
}

TEST_CASE("Moves that fail are told in the order of their calls, whichever way they went") {
  Table table;
  REQUIRE(::ftruncate(table.file.fd, 0) == 0);
  const uint32_t gone = table.add(0x555000, nullptr);  // beyond the end of `space`
  const uint64_t value = 5;
  table.scatter(gone, 0x555000, &value, 0);
  table.scatter(table.mapped, kMapped, &value, 1);
  table.scatter(table.plain, kPlain, &value, 2);
  table.scatter(gone, 0x555000, &value, 3);
  Tags failed;
  table.hca_memory.flush_scatters(failed);
  CHECK(failed == Tags{0, 1, 3});
  CHECK(table.memory[0] == std::byte{5});

  std::array<std::byte, 8> into;
  failed.clear();
  table.hca_memory.fetch(table.range(gone, 0x555000), into.data(), 8, 4);
  table.hca_memory.fetch(table.range(table.mapped, kMapped), into.data(), 8, 5);
  table.hca_memory.fetch(table.range(gone, 0x555000), into.data(), 8, 6);
  table.hca_memory.flush_fetches(failed);
  CHECK(failed == Tags{4, 5, 6});
  uint64_t original;
  CHECK_FALSE(table.hca_memory.fetch_add(table.range(table.mapped, kMapped), 1, original));
}

TEST_CASE("Only what is mapped and there is lent") {
  Table table;
  CHECK_FALSE(table.hca_memory.can_lend(table.range(table.plain, kPlain), 8));
  CHECK(table.hca_memory.can_lend(table.range(table.mapped, kMapped, kBytes), kBytes));
  const std::span<const std::byte> lent = table.file.mapped->bytes();
  std::vector<std::byte> room(kBytes);
  CHECK(table.hca_memory.begin_lent(lent, room.data()));
  table.hca_memory.end_lent();
  CHECK(table.hca_memory.take_lent(lent, room.data()));
  REQUIRE(::ftruncate(table.file.fd, 0) == 0);
  CHECK_FALSE(table.hca_memory.can_lend(table.range(table.mapped, kMapped, kBytes), kBytes));
  CHECK_FALSE(table.hca_memory.begin_lent(lent, room.data()));
  CHECK_FALSE(table.hca_memory.take_lent(lent, room.data()));
}

TEST_CASE("What a READ has asked for lands where it belongs") {
  Table table;
  File reader;
  table.file.mapped->bytes()[16] = std::byte{0x33};
  CHECK_FALSE(table.hca_memory.can_land(table.range(table.plain, kPlain)));
  CHECK(table.hca_memory.can_land(table.range(table.mapped, kMapped)));
  std::byte* const to = reader.mapped->bytes().data();
  CHECK_FALSE(table.hca_memory.land(table.range(table.plain, kPlain), to, 8));
  CHECK(table.hca_memory.land(table.range(table.mapped, kMapped + 16), to, 8));
  CHECK(reader.at(0) == std::byte{0x33});
  // Words would be split.
  CHECK_FALSE(table.hca_memory.land(table.range(table.mapped, kMapped + 16), to + 4, 8));

  REQUIRE(::ftruncate(reader.fd, 0) == 0);
  CHECK_FALSE(table.hca_memory.land(table.range(table.mapped, kMapped), to, 8));
}

TEST_CASE("What has landed is not written again") {
  Table table;
  std::byte* const at = table.file.mapped->bytes().data() + 16;
  const transport::MemoryRange range = table.range(table.mapped, kMapped + 16);
  REQUIRE(::ftruncate(table.file.fd, 0) == 0);
  table.hca_memory.scatter(range, at, 8, 0);
  Tags failed;
  table.hca_memory.flush_scatters(failed);
  CHECK(failed.empty());
}

TEST_CASE("Fetches are settled before what has to be read after them") {
  Table table;
  table.memory[8] = std::byte{0x11};
  std::array<std::byte, 8> fetched{};
  table.hca_memory.settle_fetches();
  table.hca_memory.fetch(table.range(table.plain, kPlain + 8), fetched.data(), 8, 0);
  CHECK(fetched[0] == std::byte{0});
  table.hca_memory.settle_fetches();
  CHECK(fetched[0] == std::byte{0x11});
  Tags failed;
  table.hca_memory.fetch(table.range(table.add(0x555000, nullptr), 0x555000), fetched.data(), 8, 1);
  table.hca_memory.settle_fetches();
  table.hca_memory.flush_fetches(failed);
  CHECK(failed == Tags{1});
}

TEST_CASE("What is lent is copied at once to what is mapped, and by way of its room elsewhere") {
  Table table;
  File lender;
  const std::span<std::byte> lent = lender.mapped->bytes();
  std::ranges::fill(lent, std::byte{0x33});
  std::vector<std::byte> room(kBytes);
  REQUIRE(table.hca_memory.begin_lent(lent, room.data()));
  table.scatter(table.mapped, kMapped + 16, lent.data() + 8, 0);
  CHECK(table.file.at(16) == std::byte{0x33});
  CHECK(room[8] == std::byte{0});
  table.scatter(table.plain, kPlain + 16, lent.data() + 24, 1);
  CHECK(room[24] == std::byte{0x33});
  SECTION("which is not looked at again") {
    table.hca_memory.end_lent();
    std::ranges::fill(lent, std::byte{0x44});
    Tags failed;
    table.hca_memory.flush_scatters(failed);
    CHECK(failed.empty());
    CHECK(table.memory[16] == std::byte{0x33});
  }
  SECTION("or fails, when it has gone meanwhile") {
    REQUIRE(::ftruncate(lender.fd, 0) == 0);
    table.scatter(table.plain, kPlain + 32, lent.data() + 32, 2);
    table.scatter(table.mapped, kMapped + 32, lent.data() + 32, 3);
    Tags failed;
    table.hca_memory.flush_scatters(failed);
    CHECK(failed == Tags{2, 3});
    CHECK(table.memory[16] == std::byte{0x33});
    CHECK(table.memory[32] == std::byte{0});
  }
}

TEST_CASE("A window on a mapped region reaches the same bytes") {
  Table table;
  const uint32_t first = table.regions.add_window(kPd, WindowType::type_2).value();
  const uint32_t key = (first & ~0xffu) | ((first + 1) & 0xff);
  REQUIRE(table.regions.bind(
      kPd, kQpn,
      {wire::RKey{key}, wire::LKey{table.mapped}, kMapped + 100, 50, transport::kRemoteWrite}));
  const uint64_t value = 0x42;
  table.scatter(key, kMapped + 104, &value, 0);
  CHECK(table.file.at(104) == std::byte{0x42});
}

namespace {

struct NoEvents final : EventChannel {
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
};

struct Nobody final : AddressResolver {
  bool resolve(const wire::Gid&, MacAddress&) noexcept override { return false; }
};

struct Program {
  std::array<std::byte, kBytes> memory{};
  Nobody nobody;
  Hca hca{default_config(0), {}, nobody};
  ContextId context =
      hca.open_context(dma::AddressSpace::local(memory, kPlain), std::make_unique<NoEvents>())
          .value();
  File file;

  MrSpec spec() {
    MrSpec result;
    result.pd = hca.alloc_pd(context).value();
    result.access = transport::kLocalWrite;
    result.address = result.iova = kPlain;
    result.length_bytes = kBytes;
    result.file = file.mapped;
    return result;
  }
};

}  // namespace

TEST_CASE("A file is a region's if it has the same bytes at the same place of a page") {
  Program p;
  const MrSpec good = p.spec();
  CHECK(p.hca.reg_mr(p.context, good));
  MrSpec wrong = good;
  SECTION("fewer bytes") { wrong.length_bytes -= 1; }
  SECTION("another place in a page") { wrong.address += 8; }
  SECTION("on demand") { wrong.access |= kOnDemand; }
  SECTION("no memory of the program's") { wrong.kind = MrKind::null; }
  CHECK(p.hca.reg_mr(p.context, wrong).error() == EINVAL);
}

TEST_CASE("The mapping is kept for as long as the region's memory is that") {
  Program p;
  MrSpec spec = p.spec();
  const std::weak_ptr<const dma::MappedFile> mapping = spec.file;
  const Handle mr = p.hca.reg_mr(p.context, spec).value().mr;
  spec.file = nullptr;
  p.file.mapped = nullptr;
  REQUIRE(p.hca.rereg_mr(p.context, mr, kChangeAccess, spec));
  CHECK_FALSE(mapping.expired());
  CHECK(p.hca.counts().mapped_mrs == 1);
  SECTION("the region ends") { CHECK(p.hca.dereg_mr(p.context, mr) == 0); }
  SECTION("the region moves") { REQUIRE(p.hca.rereg_mr(p.context, mr, kChangeTranslation, spec)); }
  SECTION("the region becomes one on demand") {
    spec.access |= kOnDemand;
    REQUIRE(p.hca.rereg_mr(p.context, mr, kChangeAccess, spec));
  }
  SECTION("the context ends") { p.hca.close_context(p.context); }
  CHECK(mapping.expired());
  CHECK(p.hca.counts().mapped_mrs == 0);
}
