#include "emulator/inspection/key_faults.h"

#include <catch2/catch.hpp>

using namespace rocemu;
using namespace rocemu::inspection;
using device::MemoryRegion;
using device::MemoryRegions;

namespace {

constexpr uint64_t kAddress = 0x7f0012340000;

struct Owner {
  Owner() {
    regions.tell_gone([this](uint32_t gone_key) { gone.add(gone_key); });
    key = *regions.add(region());
  }
  MemoryRegion region() {
    MemoryRegion made;
    made.pd = 3;
    made.iova = made.address = kAddress;
    made.length_bytes = 4096;
    made.space = dma.get();
    made.access = device::kUseAsRkey;
    return made;
  }
  std::optional<FindingKind> ask(uint32_t with, uint64_t address = kAddress,
                                 uint32_t length_bytes = 64) {
    return explain({wire::Qpn{1}, 3, with, address, length_bytes}, {regions, gone});
  }
  std::unique_ptr<dma::AddressSpace> dma = dma::AddressSpace::none();
  MemoryRegions regions{100};
  GoneKeys gone;
  uint32_t key = 0;
};

}  // namespace

TEST_CASE("Why a key was refused") {
  Owner owner;
  CHECK_FALSE(owner.ask(owner.key));  // for want of a right
  CHECK_FALSE(owner.ask(owner.key, kAddress + 4090));
  CHECK(owner.ask(__builtin_bswap32(owner.key)) == FindingKind::key_swapped);
  CHECK(owner.ask(__builtin_bswap32(owner.key), __builtin_bswap64(kAddress)) ==
        FindingKind::key_swapped);
  CHECK(owner.ask(owner.key, __builtin_bswap64(kAddress)) == FindingKind::address_swapped);
  CHECK(owner.ask(owner.key, kAddress << 32 | kAddress >> 32) == FindingKind::address_swapped);
  CHECK(owner.ask(0xdeadbeef) == FindingKind::key_never_given);
  CHECK(owner.ask(__builtin_bswap32(owner.key), 0, 0) == FindingKind::key_swapped);  // as a whole
  CHECK_FALSE(owner.ask(owner.key, __builtin_bswap64(kAddress), 0));
  owner.regions.remove(owner.key);
  CHECK(owner.ask(owner.key) == FindingKind::key_gone);
}

TEST_CASE("A key of another domain, and of a window") {
  Owner owner;
  MemoryRegion other = owner.region();
  other.pd = 4;
  CHECK(owner.ask(*owner.regions.add(other)) == FindingKind::other_domain);
  const auto window = owner.regions.add_window(3, device::WindowType::type_2);
  CHECK_FALSE(owner.ask(*window));
  CHECK_FALSE(owner.ask(*window + 1));
}

TEST_CASE("Keys that have gone are remembered for a while") {
  GoneKeys gone;
  for (uint32_t key = 0; key < 2 * GoneKeys::kMax; ++key) gone.add(key);
  CHECK_FALSE(gone.contains(0));
  CHECK(gone.contains(2 * GoneKeys::kMax - 1));
}
