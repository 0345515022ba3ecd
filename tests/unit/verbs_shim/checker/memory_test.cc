// What the checker knows of a program's memory: verbs_shim/checker/memory, and the ranges that
// verbs_shim/memory_watch watches.
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "tests/unit/page.h"
#include "verbs_shim/checker/memory/byte_sum.h"
#include "verbs_shim/checker/memory/nic_writes.h"
#include "verbs_shim/checker/memory/posted_targets.h"
#include "verbs_shim/checker/memory/readable_pages.h"
#include "verbs_shim/checker/memory/spans.h"
#include "verbs_shim/checker/memory/watched_memory.h"
#include "verbs_shim/checker/model/model.h"
#include "verbs_shim/memory_watch/ranges.h"

using namespace rocemu::check;
using rocemu::memory_watch::Ranges;
using rocemu::test::kPageBytes;

// In place of librocemu-memory-watch.so, which the checker looks for by this name.
extern "C" __attribute__((visibility("default"))) const rocemu_memory_watch*
rocemu_memory_watch_v1() {
  static constexpr rocemu_memory_watch kWatch = {
      [](rocemu_memory_going) {}, [](const void*, size_t) {}, [](const void*, size_t) {}};
  return &kWatch;
}

namespace {

Span span_of_bytes(const std::vector<unsigned char>& bytes) {
  return {reinterpret_cast<uintptr_t>(bytes.data()), bytes.size()};
}

uint64_t sum_of(const Span& span) { return byte_sum({&span, 1}, 1); }

// A queue whose requests all have one element.
struct Queue {
  Request& post(PostedTargets& targets, uint64_t wr_id, Span span) {
    Request& request = requests.emplace_back();
    request.wr_id = wr_id;
    request.index = requests.size();
    targets.add(queue, request, {&span, 1});
    return request;
  }

  WorkQueue queue;
  std::deque<Request> requests;
};

bool lands_on_another(const PostedTargets& targets, const Queue& queue, const Request& request,
                      Span span, size_t received) {
  return targets.other(queue.queue, request, {&span, 1}, received).has_value();
}

}  // namespace

TEST_CASE("A sum sees each byte of a short buffer") {
  const size_t bytes = GENERATE(1, 7, 8, 31, 32, 33, 64, 1000, 4096, 16384);
  std::vector<unsigned char> buffer(bytes, 0x5a);
  const uint64_t before = sum_of(span_of_bytes(buffer));
  CHECK(before != 0);
  CHECK(sum_of(span_of_bytes(buffer)) == before);
  for (size_t i = 0; i < bytes; i += 1 + bytes / 97) {
    buffer[i] ^= 1;
    CHECK(sum_of(span_of_bytes(buffer)) != before);
    buffer[i] ^= 1;
  }
}

TEST_CASE("Of a long buffer the ends are seen, and a change of all of it") {
  std::vector<unsigned char> buffer(1 << 20);
  const uint64_t before = sum_of(span_of_bytes(buffer));
  for (const size_t at : {size_t{0}, size_t{4095}, buffer.size() - 4096, buffer.size() - 1}) {
    buffer[at] = 1;
    CHECK(sum_of(span_of_bytes(buffer)) != before);
    buffer[at] = 0;
  }
  CHECK(sum_of(span_of_bytes(buffer)) == before);
  std::fill(buffer.begin() + 4096, buffer.end() - 4096, 1);
  CHECK(sum_of(span_of_bytes(buffer)) != before);
}

TEST_CASE("Memory that can't be read has no sum") {
  void* const pages =
      mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  const auto from = reinterpret_cast<uintptr_t>(pages);
  CHECK(sum_of({from, 2 * kPageBytes}) != 0);
  REQUIRE(munmap(static_cast<char*>(pages) + kPageBytes, kPageBytes) == 0);
  CHECK(sum_of({from, kPageBytes}) != 0);
  CHECK(sum_of({from + 100, kPageBytes}) == 0);
  munmap(pages, kPageBytes);
}

TEST_CASE("A page is asked for again when memory goes, and where it isn't watched") {
  void* const page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  const Span span = {reinterpret_cast<uintptr_t>(page), kPageBytes};
  CHECK_FALSE(is_all_memory_watched());
  hear_of_memory([](rocemu_check_at, const void*, size_t, const char*) {});
  watch_memory(span);
  REQUIRE(is_all_memory_watched());
  SECTION("it goes") {
    CHECK(is_readable(span));
    REQUIRE(munmap(page, kPageBytes) == 0);
    forget_readable_pages();
    CHECK_FALSE(is_readable(span));
  }
  SECTION("another region can't be watched") {
    CHECK(is_readable(span));
    watch_memory({});
    CHECK_FALSE(is_all_memory_watched());
    REQUIRE(munmap(page, kPageBytes) == 0);
    CHECK_FALSE(is_readable(span));
    unwatch_memory({});
  }
  SECTION("in a child nothing is heard") {
    reset_watched_memory_after_fork();
    CHECK_FALSE(is_all_memory_watched());
    munmap(page, kPageBytes);
  }
  unwatch_memory(span);
  reset_watched_memory_after_fork();
}

TEST_CASE("Writes of the NIC are remembered for a while") {
  NicWrites writes;
  const Span first = {1000, 100};
  const Span other = {5000, 100};
  const uint64_t begin = writes.now();
  writes.add({&first, 1});
  const Span asked = {1099, 1};
  const Span behind = {1100, 1};
  CHECK(writes.may_meet({&asked, 1}, begin));
  CHECK_FALSE(writes.may_meet({&behind, 1}, begin));
  CHECK_FALSE(writes.may_meet({&asked, 1}, writes.now()));
  for (int i = 0; i < 2000; ++i) writes.add({&other, 1});
  CHECK(writes.may_meet({&behind, 1}, begin));  // nobody knows any more
}

TEST_CASE("A null region has no place, and an implicit one all there are") {
  const rocemu_check_services services = {};
  const rocemu_check_call at = {"ibv_reg_mr", __builtin_return_address(0),
                                __builtin_frame_address(0)};
  const Call call(&at);
  Model model(services);
  Context context(call, ROCEMU_CHECK_CONTEXT, nullptr, nullptr, 0);
  const bool is_null = GENERATE(true, false);
  auto region = std::make_shared<MemoryRegion>(call, ROCEMU_CHECK_MR, &context, nullptr, 0);
  region->address = 0;
  region->bytes = UINT64_MAX;
  region->access = is_null ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
  region->lkey = 7;
  model.add(region);
  Request request;
  request.sges = {{4096, 20, 7}};
  CHECK((find_spans(context, request) == nullptr) == is_null);
}

TEST_CASE("Where a request's elements lie is looked up again once regions have changed") {
  const rocemu_check_services services = {};
  const rocemu_check_call at = {"ibv_reg_mr", __builtin_return_address(0),
                                __builtin_frame_address(0)};
  const Call call(&at);
  Model model(services);
  Context context(call, ROCEMU_CHECK_CONTEXT, nullptr, nullptr, 0);
  const auto region_at = [&](uintptr_t address) {
    auto region = std::make_shared<MemoryRegion>(call, ROCEMU_CHECK_MR, &context, nullptr, 0);
    region->address = address;
    region->bytes = 100;
    region->lkey = 7;
    return region;
  };
  Request request;
  request.sges = {{10, 20, 7}};
  CHECK(find_spans(context, request) == nullptr);

  const auto first = region_at(1000);
  model.add(first);
  REQUIRE(find_spans(context, request) != nullptr);
  CHECK(find_spans(context, request)->front().from == 1010);
  model.remove(first, kNoPlace);
  CHECK(find_spans(context, request) == nullptr);
  model.add(region_at(5000));
  REQUIRE(find_spans(context, request) != nullptr);
  CHECK(find_spans(context, request)->front().from == 5010);
}

TEST_CASE("A place that is posted for two requests") {
  PostedTargets targets;
  Queue queue;
  const Request& first = queue.post(targets, 1, {1000, 64});
  queue.post(targets, 2, {1064, 64});

  SECTION("neighbours have nothing in common") {
    CHECK_FALSE(lands_on_another(targets, queue, first, {1000, 64}, 64));
  }
  SECTION("parts in common: only when the data reaches them") {
    queue.post(targets, 3, {1040, 64});
    CHECK_FALSE(lands_on_another(targets, queue, first, {1000, 64}, 40));
    CHECK(lands_on_another(targets, queue, first, {1000, 64}, 41));
  }
  SECTION("the same with another wr_id") {
    queue.post(targets, 3, {1000, 64});
    CHECK(lands_on_another(targets, queue, first, {1000, 64}, 64));
  }
  SECTION("the same with the same wr_id, where wr_ids tell places apart") {
    queue.post(targets, 1, {1000, 64});
    CHECK(lands_on_another(targets, queue, first, {1000, 64}, 64));
  }
  SECTION("that one is over") {
    const Span span = {1000, 64};
    const Request& again = queue.post(targets, 3, span);
    targets.remove(queue.queue, again, {&span, 1});
    CHECK_FALSE(lands_on_another(targets, queue, first, span, 64));
  }
  SECTION("three at once are meant") {
    queue.post(targets, 3, {1000, 64});
    queue.post(targets, 4, {1000, 64});
    CHECK_FALSE(lands_on_another(targets, queue, first, {1000, 64}, 64));
  }
}

TEST_CASE("Where all requests have one wr_id, a place may be posted twice") {
  PostedTargets targets;
  Queue queue;
  const Request& first = queue.post(targets, 7, {1000, 64});
  queue.post(targets, 7, {2000, 64});
  queue.post(targets, 7, {1000, 64});
  CHECK_FALSE(lands_on_another(targets, queue, first, {1000, 64}, 64));
}

TEST_CASE("One scratch element of several requests is meant") {
  PostedTargets targets;
  WorkQueue queue;
  const Span scratch = {1000, 40};
  std::vector<Request> requests(2);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].wr_id = requests[i].index = i;
    const Span spans[] = {scratch, {2000 + 64 * i, 64}};
    targets.add(queue, requests[i], spans);
  }
  const Span spans[] = {scratch, {2000, 64}};
  CHECK_FALSE(targets.other(queue, requests[0], spans, 40 + 64));
}

TEST_CASE("Ranges that are watched are the parent's after a fork") {
  Ranges ranges;
  ranges.add(1000, 2000);
  ranges.after_fork();
  CHECK_FALSE(ranges.meets(0, UINTPTR_MAX));
  ranges.remove(1000, 2000);
  ranges.add(3000, 4000);
  CHECK(ranges.meets(3000, 3001));
  CHECK_FALSE(ranges.meets(1000, 2000));
}

TEST_CASE("Ranges that are watched") {
  Ranges ranges;
  CHECK_FALSE(ranges.meets(0, UINTPTR_MAX));
  ranges.add(1000, 2000);
  ranges.add(1500, 1600);
  ranges.add(5000, 6000);
  CHECK(ranges.meets(0, 1001));
  CHECK(ranges.meets(1999, 2100));
  CHECK_FALSE(ranges.meets(0, 1000));
  CHECK_FALSE(ranges.meets(2000, 5000));
  CHECK(ranges.meets(1700, 1701));
  CHECK_FALSE(ranges.meets(1700, 1700));
  ranges.remove(1000, 2000);
  CHECK_FALSE(ranges.meets(1700, 1701));
  CHECK(ranges.meets(1500, 1501));
  ranges.remove(5000, 6000);
  ranges.remove(1500, 1600);
  CHECK_FALSE(ranges.meets(0, UINTPTR_MAX));
  CHECK_FALSE(ranges.may_meet(1500));
}
