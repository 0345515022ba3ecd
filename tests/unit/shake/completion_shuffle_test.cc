#include "emulator/shake/queues/completion_shuffle.h"

#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "emulator/shake/queues/shaken_work_queues.h"
#include "tests/unit/shake/fakes.h"

namespace rocemu::shake {
namespace {

using test::completion;
using test::FakeRing;
using transport::WcStatus;

struct Shuffled {
  explicit Shuffled(uint64_t seed, CompletionShuffle::Which which = {true, true},
                    uint32_t entries = 1000)
      : ring(std::make_unique<CompletionShuffle>(std::make_unique<FakeRing>(state), entries, which,
                                                 holders, agenda, test::dice(seed))) {
    ring->set_owner(owner);
  }
  // As the device does: time passes, and what asks for it is shown.
  void run_until(TimeNs end) {
    for (TimeNs now = agenda.now(); now < end;) {
      now = std::min(end, std::max(now + 1, std::min(agenda.next(), end)));
      agenda.tick(now);
      if (std::exchange(owner.calls, 0) > 0) ring->show();
    }
  }

  FakeRing::State state;
  Agenda agenda;
  CompletionHolders holders;
  test::FakeOwner owner;
  std::unique_ptr<CompletionShuffle> ring;
};

using Queue = std::pair<uint32_t, bool>;

// What was shown of each work queue.
std::map<Queue, std::vector<uint64_t>> by_queue(const FakeRing::State& state) {
  std::map<Queue, std::vector<uint64_t>> queues;
  for (const transport::Completion& shown : state.shown)
    queues[{shown.qpn.value, shown.opcode >= transport::WcOpcode::receive}].push_back(shown.wr_id);
  return queues;
}

struct NoQueues final : device::WorkQueues, transport::SendQueue, transport::ReceiveQueue {
  transport::SendQueue& send() noexcept override { return *this; }
  transport::ReceiveQueue& receive() noexcept override { return *this; }
  bool pop(transport::SendWork&) noexcept override { return false; }
  bool pop(transport::ReceiveWork&) noexcept override { return false; }
  void release(uint32_t) noexcept override {}
  void show_state(transport::QpState) noexcept override {}
  void reset() noexcept override {}
};
struct Events final : device::EventChannel {
  Events(const FakeRing::State& ring, size_t& shown) : state(ring), shown_at_event(shown) {}
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t, uint32_t) noexcept override {
    shown_at_event = state.shown.size();
    return true;
  }
  const FakeRing::State& state;
  size_t& shown_at_event;
};

constexpr TimeNs kLongEnough = 100'000'000;

}  // namespace

TEST_CASE("completions of one work queue keep their order, those of different ones do not") {
  unsigned mixed = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Shuffled shuffled(seed);
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < 200; ++i) {
      shuffled.agenda.tick(1000 * (i + 1));
      CHECK(shuffled.ring->push(completion(1 + i % 3, i % 2 == 0, i)));
      if (i % 5 == 4) shuffled.ring->show();
    }
    shuffled.ring->show();
    shuffled.run_until(kLongEnough);
    CHECK(shuffled.state.shown.size() == 200);
    for (const auto& [queue, ids] : by_queue(shuffled.state))
      CHECK(std::is_sorted(ids.begin(), ids.end()));
    mixed +=
        !std::is_sorted(shuffled.state.shown.begin(), shuffled.state.shown.end(),
                        [](const auto& one, const auto& other) { return one.wr_id < other.wr_id; });
  }
  CHECK(mixed == 50);
}

TEST_CASE("some completions are late, and wake the device for that") {
  unsigned late = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Shuffled shuffled(seed);
    shuffled.agenda.tick(1000);
    shuffled.ring->push(completion(1, false, 1));
    shuffled.ring->show();
    if (!shuffled.state.shown.empty()) continue;
    ++late;
    CHECK(shuffled.agenda.next() > 1000);
    CHECK(shuffled.agenda.next() < kLongEnough);
    shuffled.run_until(kLongEnough);
    CHECK(shuffled.state.shown.size() == 1);
  }
  CHECK(late > 5);
  CHECK(late < 100);
}

TEST_CASE("flushes alone are mixed, and stay behind what came before them") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Shuffled shuffled(seed, {.failures = true, .successes = false});
    shuffled.agenda.tick(1000);
    shuffled.ring->push(completion(1, false, 0));
    shuffled.ring->show();
    CHECK(shuffled.state.shown.size() == 1);
    for (uint64_t i = 1; i <= 20; ++i)
      shuffled.ring->push(completion(1, i % 2 == 0, i, WcStatus::flush_error));
    shuffled.ring->push(completion(2, false, 50));
    shuffled.ring->show();
    shuffled.run_until(kLongEnough);
    CHECK(shuffled.state.shown.size() == 22);
    for (const auto& [queue, ids] : by_queue(shuffled.state))
      CHECK(std::is_sorted(ids.begin(), ids.end()));
  }
}

TEST_CASE("all is shown before a QP goes or is reset, and before an async event") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Shuffled shuffled(seed);
    auto queues = std::make_unique<ShakenWorkQueues>(std::make_unique<NoQueues>(), shuffled.holders,
                                                     shuffled.agenda, ShakenWorkQueues::Parts{});
    queues->belong_to(wire::Qpn{1});
    size_t shown_at_event = 0;
    EventsAfterCompletions events(std::make_unique<Events>(shuffled.state, shown_at_event),
                                  shuffled.holders);
    shuffled.agenda.tick(1000);
    shuffled.ring->push(completion(1, false, 1));
    shuffled.ring->show();
    queues->reset();
    CHECK(shuffled.state.shown.size() == 1);
    shuffled.ring->push(completion(1, false, 2));
    events.async_event(0, 16);
    CHECK(shown_at_event == 2);
    shuffled.ring->push(completion(1, false, 3));
    queues = nullptr;
    CHECK(shuffled.state.shown.size() == 3);
  }
}

TEST_CASE("an event for what was shown early is still wanted") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Shuffled shuffled(seed);
    shuffled.state.armed = true;
    shuffled.agenda.tick(1000);
    shuffled.ring->push(completion(1, false, 1));
    shuffled.holders.release_all();
    CHECK(shuffled.owner.calls == 1);
    CHECK(shuffled.ring->show());
    CHECK_FALSE(shuffled.ring->show());
  }
}

TEST_CASE("more than the CQ holds is an overrun, at once or when it is shown") {
  Shuffled shuffled(1, {true, true}, 8);
  shuffled.agenda.tick(1000);
  unsigned taken = 0;
  for (uint64_t i = 0; i < 20; ++i) taken += shuffled.ring->push(completion(1, false, i)) ? 1 : 0;
  CHECK(taken == 8);

  Shuffled full(2);
  full.state.room = 2;
  full.agenda.tick(1000);
  for (uint64_t i = 0; i < 3; ++i) CHECK(full.ring->push(completion(1, false, i)));
  full.holders.release_all();
  CHECK(full.owner.lost == 1);
  CHECK(full.state.shown.size() == 2);
}

TEST_CASE("a ring that takes over shows what the old one has held") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Shuffled old(seed), next(seed + 1000);
    old.agenda.tick(1000);
    for (uint64_t i = 0; i < 10; ++i) old.ring->push(completion(1, false, i));
    REQUIRE(next.ring->prepare_to_take_over(*old.ring));
    REQUIRE(next.ring->take_over(*old.ring));
    CHECK(next.state.shown.size() == 10);
  }
}

}  // namespace rocemu::shake
