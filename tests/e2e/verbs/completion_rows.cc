// Completion events: which completions bring one, channels of several CQs, and moderation
// (ibv_req_notify_cq(3), ibv_get_cq_event(3), ibv_modify_cq(3)).
#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

Ends with_channels(Lab& lab) {
  EndOptions options;
  options.with_channel = true;
  return make_ends(lab, options);
}

void arm(ibv_cq* cq, bool solicited_only = false) {
  must(ibv_req_notify_cq(cq, solicited_only ? 1 : 0), "ibv_req_notify_cq");
}

// One SEND that is received; the receive's completion stays in the CQ.
void send_one(Ends& ends, unsigned flags = 0) {
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 8));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, 8), ends.b, 0, flags);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
}

void take(End& end, int count) {
  for (int i = 0; i < count; ++i) expect_completion(end.recv_cq.get(), 1, {IBV_WC_SUCCESS});
}

void one_event_for_each_request(Lab& lab) {
  Ends ends = with_channels(lab);
  send_one(ends);
  expect_no_completion_event(ends.b);
  take(ends.b, 1);
  arm(ends.b.recv_cq.get());
  send_one(ends);
  send_one(ends);
  expect_completion_event(ends.b, ends.b.recv_cq.get());
  expect_no_completion_event(ends.b);
  take(ends.b, 2);
}

void solicited(Lab& lab) {
  Ends ends = with_channels(lab);
  arm(ends.b.recv_cq.get(), true);
  send_one(ends);
  expect_no_completion_event(ends.b);
  send_one(ends, IBV_SEND_SOLICITED);
  expect_completion_event(ends.b, ends.b.recv_cq.get());
  take(ends.b, 2);
  // An unsuccessful completion counts as solicited.
  arm(ends.b.recv_cq.get(), true);
  post_recv_ok(ends.b.qp.get(), 2, ends.b.sge(0, 8));
  must(change_to(IBV_QPS_ERR).apply(ends.b.qp.get()), "ibv_modify_qp to ERR");
  expect_completion_event(ends.b, ends.b.recv_cq.get());
}

void one_channel_for_two(Lab& lab) {
  Ends ends = with_channels(lab);
  arm(ends.b.send_cq.get());
  arm(ends.b.recv_cq.get());
  send_one(ends);
  expect_completion_event(ends.b, ends.b.recv_cq.get());
  expect_no_completion_event(ends.b);
  post(ends.b, IBV_WR_RDMA_WRITE, 3, ends.b.sge(0, 8), ends.a);
  expect_completion_event(ends.b, ends.b.send_cq.get());
  ibv_comp_channel* channel = ends.b.channel.get();
  expect_errno(ibv_destroy_comp_channel(channel), {EBUSY}, "destroying a channel in use");
}

void moderate(ibv_cq* cq, uint16_t count, uint16_t period_us) {
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate.cq_count = count;
  attr.moderate.cq_period = period_us;
  const int error = ibv_modify_cq(cq, &attr);
  if (error == EOPNOTSUPP) throw Skipped("the device has no CQ moderation");
  must(error, "ibv_modify_cq");
}

void moderated_by_time(Lab& lab) {
  Ends ends = with_channels(lab);
  ibv_cq* cq = ends.b.recv_cq.get();
  moderate(cq, 1000, 50000);
  arm(cq);
  const auto before = Clock::now();
  send_one(ends);
  expect_completion_event(ends.b, cq);
  if (Clock::now() - before < std::chrono::milliseconds(45))
    fail("the event came before its 50 ms were over");
  moderate(cq, 0, 0);
  arm(cq);
  send_one(ends);
  expect_completion_event(ends.b, cq);
}

// On a machine so slow that the time is over first, nothing is said about the count: then once
// more.
void moderated_by_count(Lab& lab) {
  constexpr uint16_t kPeriodUs = 65535;
  for (int attempt = 0; attempt < 30; ++attempt) {
    Ends ends = with_channels(lab);
    ibv_cq* cq = ends.b.recv_cq.get();
    moderate(cq, 4, kPeriodUs);
    arm(cq);
    const auto before = Clock::now();
    const auto in_time = [&] { return Clock::now() - before < std::chrono::microseconds(60000); };
    for (int i = 0; i < 3; ++i) send_one(ends);
    take(ends.b, 3);  // polling is not moderated
    const bool early = has_completion_event(ends.b);
    if (early && in_time()) fail("an event before the fourth completion");
    send_one(ends);
    expect_completion_event(ends.b, cq);
    if (in_time()) return;
  }
  fail("the event of the fourth completion never came before its time was over");
}

void moderation_refused(Lab& lab) {
  Ends ends = with_channels(lab);
  moderate(ends.b.recv_cq.get(), 1, 1);
  ibv_modify_cq_attr attr{};
  attr.attr_mask = 0x80;
  expect_errno(ibv_modify_cq(ends.b.recv_cq.get(), &attr), {EINVAL, EOPNOTSUPP},
               "an unknown attribute");
  attr.attr_mask = 0;
  expect_errno(ibv_modify_cq(ends.b.recv_cq.get(), &attr), {EINVAL}, "no attribute");
}

uint64_t cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Polling without end leaves the core to others. Each poll comes back all the same, so that a
// program which has other things to look after gets on.
void polling_in_vain(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  constexpr auto kTime = std::chrono::milliseconds(200);
  const auto start = Clock::now();
  const uint64_t cpu_before = cpu_ns();
  int polls = 0;
  for (; Clock::now() - start < kTime || polls < 2; ++polls) {
    ibv_wc completion;
    if (ibv_poll_cq(ends.b.recv_cq.get(), 1, &completion) != 0) fail("a completion of nothing");
  }
  const auto used = std::chrono::nanoseconds(cpu_ns() - cpu_before);
  if (used > (Clock::now() - start) / 2)
    fail("polling in vain took %lld us", static_cast<long long>(used.count() / 1000));
}

// Whoever polls looks now and then whether the NIC is still there.
void polling_leaves_errno(Lab& lab) {
  constexpr int kPolls = 20'000;  // the provider's kPollsPerLook and more
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ibv_wc completion;
  errno = 0;
  for (int polls = 0; polls < kPolls && errno == 0; ++polls) {
    if (ibv_poll_cq(ends.b.recv_cq.get(), 1, &completion) != 0) fail("a completion of nothing");
  }
  if (errno != 0) fail("polling in vain leaves %s", errno_text(errno).c_str());
}

// Waits until none is left, or none has come for too long.
void wait_for_all(const std::atomic<uint64_t>& left) {
  auto deadline = Clock::now() + kPatience;
  for (uint64_t before = left; before > 0 && Clock::now() < deadline;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (left == before) continue;
    before = left;
    deadline = Clock::now() + kPatience;
  }
}

// Each completion comes to one of many threads.
void many_threads_on_one_cq(Lab& lab) {
  constexpr uint64_t kPosters = 4, kPollers = 16;
  const auto room = static_cast<uint64_t>(lab.a().attr.max_cqe);
  const uint64_t each = std::min<uint64_t>(500, room / kPosters);
  const CqPtr cq(must(
      ibv_create_cq(lab.a().context.get(), static_cast<int>(kPosters * each), nullptr, nullptr, 0),
      "ibv_create_cq"));
  EndOptions options;
  options.send_cq = cq.get();
  std::vector<Ends> pairs;
  for (uint64_t i = 0; i < kPosters; ++i) {
    End a = make_end(lab.a(), options);
    pairs.push_back({std::move(a), make_end(lab.b(), {})});
    connect(pairs.back().a, pairs.back().b);
  }
  std::vector<std::atomic<int>> taken(kPosters * each);
  std::atomic<uint64_t> left{taken.size()};
  std::atomic<bool> over{false};
  std::vector<std::thread> pollers, posters;
  for (uint64_t i = 0; i < kPollers; ++i)
    pollers.emplace_back([&] {
      ibv_wc completion;
      while (left > 0 && !over) {
        if (ibv_poll_cq(cq.get(), 1, &completion) <= 0) continue;
        if (completion.status == IBV_WC_SUCCESS) ++taken[completion.wr_id];
        --left;
      }
    });
  for (uint64_t i = 0; i < kPosters; ++i)
    posters.emplace_back([&, i] {
      const Ends& ends = pairs[i];
      SendRequest request(IBV_WR_RDMA_WRITE, i * each, ends.a.sge(0, 1000));
      request.remote(ends.b.memory.address(), ends.b.mr->rkey);
      for (uint64_t sent = 0; sent < each && !over;) {
        if (post_send(ends.a.qp.get(), request.wr) != 0) continue;  // the queue is full
        ++request.wr.wr_id;
        ++sent;
      }
    });
  wait_for_all(left);
  const uint64_t missing = left;
  over = true;
  for (auto* threads : {&pollers, &posters})
    for (std::thread& thread : *threads) thread.join();
  if (missing > 0) fail("%llu are missing", static_cast<unsigned long long>(missing));
  for (const auto& times : taken) expect_equal(static_cast<uint64_t>(times), 1, "times taken");
}

}  // namespace

std::span<const Row> completion_rows() {
  static constexpr Row kRows[] = {
      {"polling in vain costs less than half a core", polling_in_vain},
      {"polling in vain leaves errno as it was", polling_leaves_errno},
      {"polling: sixteen threads take from one CQ, four post", many_threads_on_one_cq},
      {"events: one for each request", one_event_for_each_request},
      {"events: solicited ones", solicited},
      {"events: two CQs on one channel", one_channel_for_two},
      {"events: moderated, by the time", moderated_by_time},
      {"events: moderated, by the count", moderated_by_count},
      {"events: moderation with unknown attributes", moderation_refused},
  };
  return kRows;
}

}  // namespace rocemu::e2e
