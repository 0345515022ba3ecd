// Flushes whose programs are divided among threads, against a reference.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "emulator/dma/batch.h"
#include "emulator/dma/movers.h"
#include "tests/unit/dma/child_program.h"

namespace rocemu::dma {
namespace {

using test::ChildProgram;
using test::kPageBytes;
using test::random_bytes;

constexpr size_t kPages = 9;

// A thread for each job.
class ThreadMovers final : public Movers {
 public:
  void run(unsigned jobs, const std::function<void(unsigned)>& job) noexcept override {
    ++runs;
    last_jobs = jobs;
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < jobs; ++i) threads.emplace_back([&job, i] { job(i); });
  }

  unsigned runs = 0;
  unsigned last_jobs = 0;
};

// Their first 8 bytes have the probe value, so that tests leave the first page alone. All are
// forked before any is reached, which may start a thread: ThreadSanitizer allows no fork from then
// on.
struct Programs {
  static constexpr size_t kCount = 5;

  explicit Programs(Method method) {
    for (size_t i = 0; i < kCount; ++i) children.emplace_back(kPages);
    for (size_t i = 0; i < kCount; ++i) {
      spaces[i] = children[i].address_space(method);
      REQUIRE(spaces[i]);
    }
  }
  size_t random_offset(std::mt19937& random, size_t length) const {
    return kPageBytes + random() % ((kPages - 1) * kPageBytes - length);
  }

  std::deque<ChildProgram> children;
  std::array<std::unique_ptr<AddressSpace>, kCount> spaces;
};

void check_order(Method method) {
  std::mt19937 random(17);
  Programs programs(method);
  const std::vector<std::byte> source = random_bytes(random, 1 << 20);
  std::vector<std::vector<std::byte>> expected;
  for (const ChildProgram& child : programs.children)
    expected.emplace_back(child.memory().begin(), child.memory().end());

  ThreadMovers movers;
  const SharedMoves shared(&movers);
  Batch batch(Direction::to_program);
  std::vector<uint32_t> failed;
  constexpr unsigned kRounds = 20;
  for (unsigned round = 0; round < kRounds; ++round) {
    while (!batch.full()) {
      const size_t who = random() % Programs::kCount;
      const auto length = static_cast<uint32_t>(1 + random() % 5000);
      const size_t offset = programs.random_offset(random, length);
      const std::byte* from = source.data() + random() % (source.size() - length);
      batch.add(*programs.spaces[who], programs.children[who].base() + offset, from, length, 0);
      std::memcpy(expected[who].data() + offset, from, length);
    }
    batch.flush(failed);
    CHECK(batch.empty());
    REQUIRE(failed.empty());
    for (size_t who = 0; who < Programs::kCount; ++who)
      REQUIRE(std::ranges::equal(expected[who], programs.children[who].memory()));
  }
  CHECK(movers.runs == kRounds);
  CHECK(movers.last_jobs == Programs::kCount);
}

}  // namespace

TEST_CASE("what is moved for each program is moved in its order, with a thread for each") {
  check_order(Method::process_vm);
}

TEST_CASE("and likewise through descriptors") { check_order(Method::mem_fd); }

TEST_CASE("failures are told in the order of their moves when many threads have made them") {
  std::mt19937 random(19);
  Programs programs(Method::process_vm);
  for (const ChildProgram& child : programs.children) {
    const auto bytes = random_bytes(random, (kPages - 1) * kPageBytes);
    std::memcpy(child.memory().data() + kPageBytes, bytes.data(), bytes.size());
  }
  // All that one program was to move fails, too.
  constexpr size_t kGone = 2;
  programs.children[kGone].kill();
  programs.children[kGone].reap();

  ThreadMovers movers;
  const SharedMoves shared(&movers);
  Batch batch(Direction::from_program);
  std::vector<std::byte> arena(Batch::kDefaultCapacity * kPageBytes);
  std::vector<uint32_t> expected_to_fail;
  std::vector<size_t> offsets;
  for (uint32_t tag = 0; !batch.full(); ++tag) {
    const size_t who = tag % Programs::kCount;
    offsets.push_back(programs.random_offset(random, kPageBytes));
    uint64_t remote = programs.children[who].base() + offsets.back();
    const bool nothing_there = tag % 7 == 3, wraps_round = tag % 31 == 5;
    if (nothing_there) remote = uint64_t{0x10} << 32 | tag << 12;
    if (wraps_round) remote = UINT64_MAX - 100;
    if (nothing_there || wraps_round || who == kGone) expected_to_fail.push_back(tag);
    batch.add(*programs.spaces[who], remote, arena.data() + tag * kPageBytes,
              static_cast<uint32_t>(kPageBytes), tag);
  }
  std::vector<uint32_t> failed;
  batch.flush(failed);
  CHECK(movers.runs == 1);
  CHECK(failed == expected_to_fail);
  for (uint32_t tag = 0; tag < offsets.size(); ++tag)
    if (std::ranges::find(failed, tag) == failed.end())
      REQUIRE(std::memcmp(arena.data() + tag * kPageBytes,
                          programs.children[tag % Programs::kCount].memory().data() + offsets[tag],
                          kPageBytes) == 0);
}

TEST_CASE("who flushes little, or one program's, or is not to be helped, moves it alone") {
  Programs programs(Method::process_vm);
  std::vector<std::byte> arena(Batch::kWorthSharingBytes);
  std::vector<uint32_t> failed;
  const auto flush = [&](size_t bytes, size_t of_programs) {
    Batch batch(Direction::from_program);
    constexpr size_t kPieces = 4;
    for (size_t piece = 0; piece < kPieces; ++piece) {
      const size_t who = piece % of_programs;
      batch.add(*programs.spaces[who], programs.children[who].base(),
                arena.data() + piece * (bytes / kPieces), static_cast<uint32_t>(bytes / kPieces),
                0);
    }
    batch.flush(failed);
    CHECK(failed.empty());
  };
  constexpr size_t kMuch = Batch::kWorthSharingBytes;

  flush(kMuch, 2);  // nobody is there to help
  ThreadMovers movers, others;
  {
    const SharedMoves outer(&others);
    const SharedMoves shared(&movers);
    flush(kMuch - 4, 2);
    flush(kMuch, 1);
    CHECK(movers.runs == 0);
    flush(kMuch, 2);
    CHECK(movers.runs == 1);
    std::jthread([&] { flush(kMuch, 2); }).join();  // another thread's flush is its own
    CHECK(movers.runs == 1);
    const SharedMoves alone(nullptr);
    flush(kMuch, 2);
    CHECK(movers.runs == 1);
  }
  CHECK(others.runs == 0);
  CHECK(SharedMoves::of_this_thread() == nullptr);
}

}  // namespace rocemu::dma
