#include "tests/fuzz/transport/arena.h"

#include <algorithm>

#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

namespace {

constexpr uint64_t kBaseAddress = 0x10000;
constexpr uint32_t kAll = transport::kLocalWrite | transport::kRemoteWrite |
                          transport::kRemoteRead | transport::kRemoteAtomic |
                          transport::kFlushGlobal;
constexpr uint32_t kReadOnly = 1;
constexpr uint32_t kForeign = 2;
constexpr std::byte kSecret{0xee};

uint32_t changing(uint32_t index) {
  return Arena::kFirstChanging + index % (Arena::kRegions - Arena::kFirstChanging);
}

}  // namespace

Arena::Arena() : memory_(kBaseAddress) {
  add(0, kPd, 64 * 1024, kAll);
  add(kReadOnly, kPd, 256, transport::kRemoteRead);
  add(kForeign, kForeignPd, 256, kAll);
  add(3, kPd, 8192, transport::kLocalWrite);
  add(4, kPd, 4096, kAll);
  add(5, kPd, 4096, kAll);
  memory_.break_region(regions_[5].key);
  std::ranges::fill(memory_.at(regions_[kForeign].address, regions_[kForeign].length_bytes),
                    kSecret);
}

void Arena::add(uint32_t index, transport::PdHandle pd, uint32_t length_bytes, uint32_t access) {
  const uint64_t address = memory_.allocate(length_bytes);
  regions_[index] = {address, length_bytes,
                     memory_.register_region(pd, address, length_bytes, access)};
}

void Arena::deregister(uint32_t index) { memory_.deregister(regions_[changing(index)].key); }

void Arena::break_moves(uint32_t index) {
  register_anew(index);
  memory_.break_region(regions_[changing(index)].key);
}

void Arena::register_anew(uint32_t index) {
  Region& region = regions_[changing(index)];
  memory_.deregister(region.key);
  region.key = memory_.register_region(kPd, region.address, region.length_bytes, kAll);
}

void Arena::check() {
  const auto constant = [&](uint32_t index, std::byte value) {
    const Region& region = regions_[index];
    return std::ranges::all_of(memory_.at(region.address, region.length_bytes),
                               [&](std::byte b) { return b == value; });
  };
  expect(memory_.guards_intact(), "nothing is written behind a region");
  expect(constant(kReadOnly, std::byte{0}), "a read-only region is not written");
  expect(constant(kForeign, kSecret), "a region of another protection domain is not written");
}

void Arena::check_no_secret(std::span<const std::byte> bytes) {
  uint32_t run = 0;
  for (const std::byte b : bytes) {
    run = b == kSecret ? run + 1 : 0;
    expect(run < 8, "a region of another protection domain is not read");
  }
}

}  // namespace rocemu::fuzz
