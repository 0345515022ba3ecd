#include "emulator/shake/memory/scribble.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/shake/fakes.h"

namespace rocemu::shake {
namespace {

using test::FakeMemory;

constexpr uint64_t kBase = FakeMemory::kBase;
constexpr uint32_t kWrite = transport::kLocalWrite;

struct Scribbled {
  explicit Scribbled(uint64_t seed) {
    auto inner = std::make_unique<FakeMemory>();
    memory = inner.get();
    scribble = std::make_unique<Scribble>(std::move(inner), test::dice(seed));
  }
  transport::MemoryRange check(uint64_t address, uint32_t length, uint32_t access = kWrite) {
    transport::MemoryRange range;
    scribble->check_local(1, wire::LKey{1}, address, length, access, range);
    return range;
  }
  void end_of_burst() {
    std::vector<uint32_t> failed;
    scribble->flush_fetches(failed);
  }
  std::vector<uint32_t> flush() {
    std::vector<uint32_t> failed;
    scribble->flush_scatters(failed);
    return failed;
  }
  bool untouched(uint64_t address, size_t length) const {
    const auto from = memory->bytes.begin() + static_cast<ptrdiff_t>(address - kBase);
    return std::all_of(from, from + static_cast<ptrdiff_t>(length),
                       [](std::byte byte) { return byte == std::byte{}; });
  }

  FakeMemory* memory;
  std::unique_ptr<Scribble> scribble;
};

const std::vector<std::byte> kData(1000, std::byte{7});

}  // namespace

TEST_CASE("a receive is scribbled on before its data, as far as that reaches") {
  Scribbled scribbled(1);
  const auto range = scribbled.check(kBase, 1000);
  scribbled.scribble->scatter(range, kData.data(), 1000, 3);
  CHECK(scribbled.flush().empty());
  const auto& moves = scribbled.memory->moves;
  REQUIRE(moves.size() == 2);
  CHECK(moves[0].address == kBase);
  CHECK(moves[0].bytes.size() == 1000);
  CHECK(moves[0].bytes != kData);
  CHECK(moves[1].bytes == kData);
  CHECK(scribbled.untouched(kBase + 1000, 4000));
}

TEST_CASE("a READ's buffer is scribbled on when the READ leaves") {
  Scribbled scribbled(1);
  scribbled.check(kBase, 1000);
  CHECK(scribbled.untouched(kBase, 1000));
  scribbled.end_of_burst();
  CHECK_FALSE(scribbled.untouched(kBase, 1000));
  CHECK(scribbled.untouched(kBase + 1000, 4000));
  CHECK(scribbled.memory->waiting.empty());
  // Of several elements each is.
  scribbled.check(kBase + 4096, 100);
  scribbled.check(kBase + 8192, 100);
  scribbled.end_of_burst();
  CHECK_FALSE(scribbled.untouched(kBase + 4096, 100));
  CHECK_FALSE(scribbled.untouched(kBase + 8192, 100));
}

TEST_CASE("what a peer writes, and what is only read, is not scribbled on") {
  Scribbled scribbled(1);
  transport::MemoryRange range;
  scribbled.scribble->check_remote(1, wire::Qpn{2}, wire::RKey{1}, kBase, 1000,
                                   transport::kRemoteWrite, range);
  scribbled.scribble->scatter(range, kData.data(), 1000, 0);
  scribbled.check(kBase + 8192, 1000, transport::kLocalRead);
  scribbled.end_of_burst();
  scribbled.flush();
  REQUIRE(scribbled.memory->moves.size() == 1);
  CHECK(scribbled.memory->moves[0].bytes == kData);
  CHECK(scribbled.untouched(kBase + 8192, 1000));
}

TEST_CASE("a message that travels in its completion is not scribbled over") {
  Scribbled scribbled(1);
  scribbled.check(kBase, 16);
  scribbled.end_of_burst();
  scribbled.flush();
  CHECK(scribbled.memory->moves.empty());
}

TEST_CASE("a buffer that was sent from is left alone until its data comes") {
  Scribbled scribbled(1);
  std::byte sent[100];
  scribbled.scribble->fetch({scribbled.memory, kBase + 50}, sent, 100, 0);
  scribbled.check(kBase, 1000);
  scribbled.end_of_burst();
  CHECK(scribbled.untouched(kBase, 1000));
  scribbled.scribble->scatter(scribbled.check(kBase, 1000), kData.data(), 1000, 3);
  scribbled.flush();
  CHECK(scribbled.memory->moves.size() == 2);
  CHECK(scribbled.memory->moves[1].bytes == kData);
}

TEST_CASE("garbage that cannot be written is no failure, data that was flushed with it is") {
  Scribbled scribbled(1);
  scribbled.scribble->scatter(scribbled.check(FakeMemory::kBroken, 100), kData.data(), 100, 3);
  scribbled.check(kBase, 1000);  // a READ, which has all before it flushed
  scribbled.end_of_burst();
  scribbled.scribble->scatter(scribbled.check(FakeMemory::kBroken, 100), kData.data(), 100, 4);
  CHECK(scribbled.flush() == std::vector<uint32_t>{3, 4});
  CHECK(scribbled.flush().empty());
}

}  // namespace rocemu::shake
