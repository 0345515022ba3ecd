#include <sys/eventfd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "verbs_shim/provider/rings/completion_ring.h"
#include "verbs_shim/provider/rings/doorbell.h"
#include "verbs_shim/provider/rings/sleep_place.h"
#include "verbs_shim/provider/rings/work_ring.h"

using namespace rocemu::provider;

namespace {

constexpr uint32_t kEntries = 4;
constexpr uint32_t kStride = 64;

struct WorkMemory {
  uint32_t producer;
  uint32_t consumer;
  std::array<uint8_t, kEntries* kStride> slots = {};
  WorkRing ring;

  explicit WorkMemory(uint32_t start) : producer(start), consumer(start) {
    ring.attach(&producer, &consumer, slots.data(), kEntries, kStride);
  }
};

struct CompletionMemory {
  alignas(64) std::array<uint8_t, ROCEMU_CQ_RING_OFFSET + kEntries * sizeof(rocemu_cqe)> bytes = {};
  CompletionRing ring;

  CompletionMemory() { ring.attach(bytes.data(), kEntries); }
  rocemu_cq_header& header() { return *reinterpret_cast<rocemu_cq_header*>(bytes.data()); }
  void complete(uint64_t wr_id, uint32_t qp_num) {
    auto* slots = reinterpret_cast<rocemu_cqe*>(bytes.data() + ROCEMU_CQ_RING_OFFSET);
    rocemu_cqe entry = {};
    entry.wr_id = wr_id;
    entry.qp_num = qp_num;
    slots[header().producer % kEntries] = entry;
    ++header().producer;
  }
  std::vector<uint64_t> take_all() {
    std::vector<uint64_t> ids;
    while (const rocemu_cqe* entry = ring.take()) ids.push_back(entry->wr_id);
    ring.give_back();
    return ids;
  }
};

}  // namespace

TEST_CASE("a work ring of which less is granted than it has slots takes no more than that") {
  uint32_t producer = 0, consumer = 0;
  std::array<uint8_t, kEntries* kStride> slots = {};
  WorkRing ring;
  ring.attach(&producer, &consumer, slots.data(), 3, kStride);
  for (uint32_t round = 0; round < 5; ++round) {
    for (uint32_t i = 0; i < 3; ++i)
      CHECK(ring.claim() == slots.data() + (3 * round + i) % kEntries * kStride);
    CHECK(ring.claim() == nullptr);
    ring.publish();
    consumer = producer;
  }
}

TEST_CASE("a work ring takes as many entries as it has, and more once the NIC has moved on") {
  // Also across the wrap of the free-running indices.
  WorkMemory memory(GENERATE(0u, 0xfffffffeu));
  const uint32_t start = memory.producer;
  for (uint32_t i = 0; i < kEntries; ++i) {
    CHECK(memory.ring.claim() == memory.slots.data() + (start + i) % kEntries * kStride);
  }
  CHECK(memory.ring.claim() == nullptr);
  CHECK(memory.producer == start);
  memory.ring.publish();
  CHECK(memory.producer == start + kEntries);
  ++memory.consumer;
  CHECK(memory.ring.claim() == memory.slots.data() + start % kEntries * kStride);
  CHECK(memory.ring.claim() == nullptr);
}

TEST_CASE("claimed work entries can be given back") {
  WorkMemory memory(0);
  uint8_t* first = memory.ring.claim();
  memory.ring.publish();
  uint8_t* second = memory.ring.claim();
  memory.ring.claim();
  memory.ring.unclaim_last();
  CHECK(memory.ring.has_claimed());
  memory.ring.unclaim_all();
  CHECK_FALSE(memory.ring.has_claimed());
  CHECK(memory.ring.claim() == second);
  CHECK(first != second);
}

TEST_CASE("completions come in order and their room is given back together") {
  CompletionMemory memory;
  CHECK(memory.ring.take() == nullptr);
  memory.complete(1, 7);
  memory.complete(2, 7);
  CHECK(memory.ring.take()->wr_id == 1);
  CHECK(memory.header().consumer == 0);
  CHECK(memory.ring.take()->wr_id == 2);
  memory.ring.give_back();
  CHECK(memory.header().consumer == 2);
}

TEST_CASE("completions of a QP that is gone are skipped") {
  CompletionMemory memory;
  memory.complete(1, 7);
  memory.complete(2, 8);
  memory.complete(3, 7);
  memory.ring.kill(7);
  CHECK(memory.header().consumer == 0);
  memory.ring.give_back();
  CHECK(memory.header().consumer == 1);
  CHECK(memory.take_all() == std::vector<uint64_t>{2});
  CHECK(memory.header().consumer == 3);
  memory.complete(4, 7);  // a new QP with the number
  CHECK(memory.take_all() == std::vector<uint64_t>{4});
}

TEST_CASE("a completion of a QP that is gone carries no payload any more") {
  CompletionMemory memory;
  memory.complete(1, 8);
  memory.complete(2, 7);
  auto* slots = reinterpret_cast<rocemu_cqe*>(memory.bytes.data() + ROCEMU_CQ_RING_OFFSET);
  slots[1].inline_bytes = 16;
  memory.ring.kill(7);
  memory.ring.visit_untaken([](const rocemu_cqe& entry) { CHECK(entry.inline_bytes == 0); });
}

TEST_CASE("a ring that is about to move does not look empty") {
  CompletionMemory memory;
  CHECK(memory.ring.looks_empty());
  memory.ring.set_moves(true);
  CHECK_FALSE(memory.ring.looks_empty());
  memory.ring.set_moves(false);
  CHECK(memory.ring.looks_empty());
}

TEST_CASE("arming never lowers what is armed") {
  CompletionMemory memory;
  memory.ring.arm(ROCEMU_CQ_ARM_NEXT);
  memory.ring.arm(ROCEMU_CQ_ARM_SOLICITED);
  CHECK(memory.header().arm == ROCEMU_CQ_ARM_NEXT);
  memory.header().arm = ROCEMU_CQ_UNARMED;
  memory.ring.arm(ROCEMU_CQ_ARM_SOLICITED);
  CHECK(memory.header().arm == ROCEMU_CQ_ARM_SOLICITED);
}

TEST_CASE("a doorbell sets its bit and the bit above it, and tells whether the NIC sleeps") {
  auto page = std::make_unique<rocemu_doorbell_page>();
  auto engine = std::make_unique<rocemu_engine_page>();
  std::memset(page.get(), 0, sizeof(*page));
  std::memset(engine.get(), 0, sizeof(*engine));
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  Doorbells doorbells;
  doorbells.page = page.get();
  doorbells.engine = engine.get();
  doorbells.wake_fd = wake_fd;

  const uint32_t slot = GENERATE(0u, 63u, 64u, 4096u, 65535u);
  CHECK(doorbells.ring(slot) == 0);
  CHECK(page->groups[slot / 4096].words[slot / 64 % 64] == uint64_t{1} << slot % 64);
  CHECK(page->groups[slot / 4096].summary == uint64_t{1} << slot / 64 % 64);
  uint64_t wakes = 0;
  CHECK(read(wake_fd, &wakes, sizeof(wakes)) == -1);

  engine->sleeping = ROCEMU_ENGINE_SLEEPS;
  CHECK(doorbells.ring(slot) == ROCEMU_ENGINE_SLEEPS);
  doorbells.wake();
  CHECK(read(wake_fd, &wakes, sizeof(wakes)) == sizeof(wakes));
  close(wake_fd);
}

TEST_CASE("a ring that looks empty has nothing to take, and one with more does not") {
  CompletionMemory memory;
  CHECK(memory.ring.looks_empty());
  memory.complete(1, 7);
  memory.complete(2, 7);
  CHECK_FALSE(memory.ring.looks_empty());
  memory.ring.take();
  CHECK_FALSE(memory.ring.looks_empty());
  memory.ring.take();
  CHECK(memory.ring.looks_empty());
}

TEST_CASE("who sleeps over an empty ring asks to be woken when more is shown") {
  CompletionMemory memory;
  memory.complete(7, 1);
  REQUIRE(memory.ring.take() != nullptr);
  REQUIRE(memory.ring.looks_empty());
  const SleepPlace place = memory.ring.announce_sleeper();
  CHECK(memory.header().sleepers == 1);
  CHECK(place.word == &memory.header().producer);
  CHECK(place.seen == 1);
}

TEST_CASE(
    "a sleep ends with its time, at once where the word has changed, and leaves errno alone") {
  uint32_t word = 5;
  errno = EDOM;
  const auto start = std::chrono::steady_clock::now();
  sleep_in({&word, 5}, 1'000'000);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(1));
  sleep_in({&word, 4}, 999'000'000);
  sleep_in({nullptr, 0}, 999'000'000);  // the memory has gone
  CHECK(errno == EDOM);
}
